#!/usr/bin/env bash
# Makes the image caravanserai/busybox:local from a static busybox, so that tests and demo need no registry. Installs
# busybox-static when there is none; tests make images of their own from it.
#
# Prints "made" or "present". The image holds /bin/busybox, its applets as links, /www/index.html and /tmp.
set -euo pipefail

IMAGE=caravanserai/busybox:local
say() { printf 'image: %s\n' "$*" >&2; }

is_static() { [ -x "$1" ] && ! ldd "$1" >/dev/null 2>&1; }
busybox=
for candidate in /bin/busybox /usr/bin/busybox; do
  if is_static "$candidate"; then busybox=$candidate; break; fi
done
if [ -z "$busybox" ]; then
  say "apt-get install busybox-static (the only content of the image that tests and demo run)"
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  command -v apt-get >/dev/null || { say "no static busybox, and this is not Debian or Ubuntu: install one as /bin/busybox"; exit 1; }
  "${sudo[@]}" apt-get update -q >&2 || true
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends busybox-static >&2
  for candidate in /bin/busybox /usr/bin/busybox; do
    if is_static "$candidate"; then busybox=$candidate; break; fi
  done
fi

if docker image inspect "$IMAGE" >/dev/null 2>&1; then echo present; exit 0; fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,etc,tmp,www,data}
chmod 1777 "$root/tmp"
cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do
  [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 'hello from a caravanserai' >"$root/www/index.html"
tar -C "$root" --owner=0 --group=0 -c . |
  docker import --change 'ENV PATH=/bin' --change 'CMD ["sh"]' - "$IMAGE" >/dev/null
echo made
