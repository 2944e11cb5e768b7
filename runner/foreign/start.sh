#!/bin/sh
# Starts a program that is a module: it is given the file of its arguments.
d=${0%/*}
umask 077
base64 -d > "$d/arguments" <<'END' || exit 126
@ARGUMENTS@
END
base64 -d > "$d/module" <<'END' || exit 126
@PROGRAM@
END
chmod 700 "$d/module"
exec @INTERPRETER@"$d/module" "$d/arguments"
