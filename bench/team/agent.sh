#!/bin/sh
# An ACP agent without a model. It answers each prompt with one word.
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
        *'"method":"session/prompt"'*)
            text='{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Fine."}}'
            echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$text"'}}'
            result='{"stopReason":"end_turn"}'
            ;;
        *'"method"'*) result='{}' ;;
        *) continue ;;
    esac
    echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
done
