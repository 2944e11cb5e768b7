exec 2>&1;
say() { printf "\nkubeon-$token: %s\n" "$*"; };
a=$(uname -sm);
case $a in "Linux "*) a=${a#Linux };; *) say system "${a%% *}"; exit 1;; esac;
case $a in
x86_64|amd64) a=x86_64 n=$x86_64_sha256 s=$x86_64_size z=$x86_64_packed;;
aarch64|arm64) a=aarch64 n=$aarch64_sha256 s=$aarch64_size z=$aarch64_packed;;
*) n=;;
esac;
if [ -z "$n" ]; then say architecture "$a"; exit 1; fi;
if [ "$fresh" = 0 ] && [ -n "$own" ] && [ -x "$own" ]; then exec "$own" agent 2>/dev/null; fi;
c=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}};
c=${c:-/dev/null};
mine() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; };
f=$c/kubeon-run/agent-$n;
if [ "$fresh" = 0 ] && mine "$c/kubeon-run" && [ -f "$f" ] && [ -x "$f" ]; then exec "$f" 2>/dev/null; fi;
u=$(id -u);
if [ "$fresh" = 0 ]; then
for d in "$c/kubeon-run" "/var/tmp/kubeon-run-$u" "/tmp/kubeon-run-$u" "/dev/shm/kubeon-run-$u" "/run/user/$u/kubeon-run"; do
f=$d/agent-$n;
if mine "$d" && [ -f "$f" ] && [ -x "$f" ] && [ "$(wc -c < "$f")" -eq "$s" ]; then exec "$f" 2>/dev/null; fi;
done;
fi;
m=$(umask);
umask 077;
g=raw;
if command -v gzip >/dev/null 2>&1; then g=gzip; fi;
w=;
for d in "$c/kubeon-run" "/var/tmp/kubeon-run-$u" "/tmp/kubeon-run-$u" "/dev/shm/kubeon-run-$u" "/run/user/$u/kubeon-run"; do
t=$d/.new-$token f=$d/agent-$n;
if e=$(mkdir -p "$d" 2>&1); then :; else w="$w; $d: $e"; continue; fi;
if mine "$d"; then :; else w="$w; $d: belongs to another user or is a link"; continue; fi;
if e=$({ chmod 700 "$d" && printf '#!/bin/sh\nexit 0\n' > "$t" && chmod 700 "$t" && "$t"; } 2>&1); then :; else
w="$w; $d: ${e:-nothing can be executed there}"; rm -f "$t"; continue; fi;
say need "$a" "$g";
if [ "$g" = gzip ]; then e=$({ head -c "$z" | { gzip -dc > "$t"; r=$?; cat >/dev/null; exit $r; }; } 2>&1); r=$?;
else e=$({ head -c "$s" | { cat > "$t"; r=$?; cat >/dev/null; exit $r; }; } 2>&1); r=$?; fi;
if [ "$r" = 0 ] && [ "$(wc -c < "$t")" -eq "$s" ] && e=$("$t" check "$n" 2>&1) && e=$(mv -f "$t" "$f" 2>&1); then
find "$d" \( -name "agent-*" -mtime +30 ! -name "agent-$n" -o -name ".new-*" -mtime +0 \) -exec rm -f {} + >/dev/null 2>&1;
umask "$m";
exec "$f" 2>/dev/null; fi;
w="$w; $d: ${e:-the agent does not arrive whole}";
rm -f "$t";
done;
say nowhere "$(printf "%s" "${w#; }" | tr "\n" " ")";
exit 1
