#!/bin/sh
# An agent that speaks just enough of the Agent Client Protocol. What it hears goes to the file `heard`.
# A prompt that says DIE ends it, one that says LAST does so after its turn; one that says TALK makes it
# say something first.
echo started >> heard
session=s1
while read -r line; do
    id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case $line in
        *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
        *'"session/new"'*)
            echo begun >> heard
            answer "{\"sessionId\":\"$session\"}"
            ;;
        *'"session/load"'*)
            echo loaded >> heard
            [ ! -e dies-loading ] || exit 3
            answer '{}'
            ;;
        *'"session/prompt"'*)
            printf '%s\n' "$line" >> heard
            case $line in
                *DIE*) exit 3 ;;
                *TALK*) printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I am talking"}}}}\n' "$session" ;;
            esac
            answer '{"stopReason":"end_turn"}'
            case $line in *LAST*) exit 3 ;; esac
            ;;
    esac
done
