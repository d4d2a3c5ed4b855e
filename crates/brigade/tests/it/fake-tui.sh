#!/bin/sh
# A scripted agent with an interface of its own. With --acp it is fake-agent.sh. Otherwise it reads lines from the terminal
# until the line `quit`, and records everything in the file `heard` in its working directory.
case " $* " in
    *" --acp "*) exec "$(dirname "$0")/fake-agent.sh" ;;
esac
ended() {
    # A program needs some time to end.
    sleep 0.5
    echo terminated >> heard
    exit 1
}
trap ended TERM HUP
echo "opened $*" >> heard
echo "the own interface"
while read -r line && [ "$line" != quit ]; do
    echo "typed $line" >> heard
done
echo closed >> heard
