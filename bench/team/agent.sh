#!/bin/sh
# An ACP agent without a model. It appends each prompt to the file `heard` in its folder, waits for the seconds in the file
# `pause`, if there is one, and answers with one word. Its session is the file `heard`: when the session is loaded, it repeats
# the prompts in the file.
update() {
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' \
        '{"sessionUpdate":"'"$1"'","content":{"type":"text","text":"'"$2"'"}}'
}

# If the agent was killed while it appended a prompt, the last line is incomplete and does not count.
load() {
    [ -e heard ] || return
    [ -z "$(tail -c 1 heard)" ] || echo >>heard
    sed -n -e 's|","type":"text"},{"text":"|\\n|g' \
        -e 's|^.*"text":"\(.*\)","type":"text".*}}$|'"$(update user_message_chunk '\1')"'|p' heard
}

while read -r line; do
    case $line in
        *'"id":'*) ;;
        *) continue ;;
    esac
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
        *'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
        *'"method":"session/new"'*) result='{"sessionId":"s1"}' ;;
        *'"method":"session/load"'*)
            load
            result='{}'
            ;;
        *'"method":"session/prompt"'*)
            printf '%s\n' "$line" >>heard
            [ ! -e pause ] || { read -r seconds <pause && sleep "$seconds"; }
            update agent_message_chunk Fine.
            result='{"stopReason":"end_turn"}'
            ;;
        *'"method"'*) result='{}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
