#!/usr/bin/env bash
# Makes the images postgres:local and redis:local from Debian's packages, so that tests of databases need no registry.
# A Database takes them with `version: local`.
#
# usage: database-images.sh [postgres] [redis]       both without arguments
# env:   CARA_CACHE     where packages are kept (default: $XDG_CACHE_HOME/caravanserai or ~/.cache/caravanserai)
# exit:  0 they are there; 3 they can't be made here, and the reason is on stderr
#
# What the two images do at their start is in postgres-entrypoint.sh and redis-entrypoint.sh beside this script; it is what
# control/src/engines.rs expects of the official images. Prints "NAME made" or "NAME present" for each.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf 'images: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 3; }

# What every image has: a shell with its tools, what makes another user of root, names of zones and of users.
BASE=(busybox-static setpriv tzdata libc6 libc-bin)
# PostgreSQL's compiler of queries, larger than all else together, and not needed.
LEFT_OUT='^libllvm|^llvm|^libclang'

CACHE=${CARA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caravanserai}/packages

main() {
  local name
  [ $# -gt 0 ] || set -- postgres redis
  for name in "$@"; do
    if docker image inspect "$name:local" >/dev/null 2>&1; then
      echo "$name present"
    else
      "make_$name"
      echo "$name made"
    fi
  done
}

make_postgres() {
  need_packages
  local major
  major=$(apt-cache depends postgresql | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p' | head -1)
  [ -n "$major" ] || give_up "apt knows no package postgresql: run apt-get update"
  new_root
  unpack "postgresql-$major" "postgresql-client-$major"
  add_user postgres 999
  local programs=/usr/lib/postgresql/$major/bin
  rm -f "$root/usr/lib/postgresql/$major/lib/"llvmjit*
  rm -rf "$root/usr/lib/postgresql/$major/lib/bitcode"
  check_libraries "$programs/postgres" "$programs/psql" "$programs/initdb"
  mkdir -p "$root/var/run/postgresql" "$root/var/lib/postgresql/data"
  chown -R 999:999 "$root/var/run/postgresql" "$root/var/lib/postgresql"
  # SIGINT is PostgreSQL's order to stop without waiting for its clients.
  make_image postgres "PATH=$programs:/usr/sbin:/usr/bin:/sbin:/bin" postgres SIGINT
}

make_redis() {
  need_packages
  new_root
  unpack redis-server redis-tools
  add_user redis 999
  check_libraries /usr/bin/redis-server /usr/bin/redis-cli
  mkdir -p "$root/data"
  chown 999:999 "$root/data"
  make_image redis "PATH=/usr/sbin:/usr/bin:/sbin:/bin" redis-server SIGTERM
}

need_packages() {
  command -v apt-get >/dev/null || give_up "images are made of Debian's packages, and this is not Debian or Ubuntu"
  [ "$(id -u)" = 0 ] || give_up "files of other owners can be put into an image by root only: run as root"
  if ! apt-cache show postgresql redis-server >/dev/null 2>&1; then apt-get update -q >&2 || true; fi
}

new_root() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  root=$work/root
  mkdir -m 755 "$root"
}

# Unpacks packages and the libraries that they need. Nothing is installed: their scripts don't run.
unpack() { # package...
  local wanted file
  wanted=$(closure "$@")
  say "apt-get download $* and $(($(wc -w <<<"$wanted") - $#)) packages that they need"
  mkdir -p "$CACHE"
  (
    cd "$CACHE"
      # shellcheck disable=SC2086 # A list of names.
    apt-get download -q -o APT::Sandbox::User=root $wanted >&2
  ) || give_up "apt-get could not download the packages"
  # As in Debian: /bin is /usr/bin.
  for folder in bin sbin lib lib64; do
    mkdir -p "$root/usr/$folder"
    ln -sfn "usr/$folder" "$root/$folder"
  done
  mkdir -p "$root"/{etc,tmp,var/lib,run}
  ln -sfn ../run "$root/var/run"
  chmod 1777 "$root/tmp"
  for package in $wanted; do
    file=$(find "$CACHE" -name "${package}_*.deb" -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
    dpkg-deb --fsys-tarfile "$file" | tar -C "$root" --keep-directory-symlink -x
  done
  rm -rf "$root"/usr/share/{doc,man,locale,lintian,info,perl5}
  chroot "$root" /bin/busybox --install -s /usr/bin 2>/dev/null || true
  # Where busybox and a package have the same program, the package's was there first and stays.
  chroot "$root" /sbin/ldconfig
}

# The packages themselves and, from what they need, the libraries.
closure() { # package...
  local only=(--recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances --no-pre-depends)
  {
    printf '%s\n' "$@"
    printf '%s\n' "${BASE[@]}" | grep -v '^setpriv$'
    # A package of its own in some releases, a part of util-linux in others.
    if apt-cache show setpriv >/dev/null 2>&1; then echo setpriv; else printf '%s\n' util-linux libcap-ng0; fi
    apt-cache depends "${only[@]}" "$@" | grep -E '^(lib|zlib1g$)' | grep -vE "$LEFT_OUT|perl|:"
  } | sort -u
}

add_user() { # name id
  printf 'root:x:0:0:root:/root:/bin/sh\n%s:x:%s:%s::/:/bin/sh\n' "$1" "$2" "$2" >"$root/etc/passwd"
  printf 'root:x:0:\n%s:x:%s:\n' "$1" "$2" >"$root/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
}

check_libraries() { # program...
  local program
  for program in "$@"; do
    # The loader itself, since ldd is a script that wants bash.
    if chroot "$root" /bin/sh -c "$(loader) --list $program" | grep 'not found' >&2; then
      give_up "$program lacks the libraries above"
    fi
  done
}

loader() {
  local found
  for found in "$root"/lib64/ld-linux-*.so.* "$root"/lib/ld-linux-*.so.*; do
    [ ! -e "$found" ] || { echo "${found#"$root"}"; return; }
  done
  give_up "there is no loader of programs in the packages"
}

make_image() { # name environment command signal
  install -m 755 "$1-entrypoint.sh" "$root/usr/bin/docker-entrypoint.sh"
  tar -C "$root" --numeric-owner -cf "$work/root.tar" .
  cat >"$work/Dockerfile" <<DOCKERFILE
FROM scratch
ADD root.tar /
ENV $2
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["$3"]
STOPSIGNAL $4
DOCKERFILE
  rm -rf "$root"
  # Not `docker import`, which takes no STOPSIGNAL.
  docker build -q -t "$1:local" "$work" >/dev/null 2>"$work/build.log" || give_up "docker build: $(tail -1 "$work/build.log")"
  rm -rf "$work"
}

main "$@"
