#!/bin/sh
# A scripted agent that supports just enough of the Agent Client Protocol for tests. It appends every prompt to the
# file `heard` in its working directory.
# Words in a prompt control what the agent does:
#   DIE    exit at once                     LAST   exit after the turn
#   TALK   send text before the turn ends   EDIT   report a file change
#   STAY   start a program in its own session; record the process ids of the guard, the agent and that program
#   ASK    request permission for a command and record the answer (ASKTWICE: twice in one turn)
#   WORK   send text in fifty pieces, use a tool and send text again
#   REPLY  send a message to the lead, as the member named in its MCP settings
#   SLEEP  start commands in a tool call, and end the turn only when it is cancelled
#   FAIL   fail the turn (only the first time)
echo started >> heard
session=s1
while read -r line; do
    id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$session" "$1"; }
    case $line in
        *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
        *'"session/new"'*)
            echo begun >> heard
            tools=$line
            answer "{\"sessionId\":\"$session\"}"
            ;;
        *'"session/load"'*)
            echo loaded >> heard
            [ ! -e dies-loading ] || exit 3
            answer '{}'
            ;;
        *'"session/set_mode"'*|*'"session/set_model"'*) answer '{}' ;;
        *'"session/prompt"'*)
            printf '%s\n' "$line" >> heard
            case $line in
                *DIE*) exit 3 ;;
                *FAIL*)
                    if [ ! -e has-failed ]; then
                        : > has-failed
                        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"not logged in"}}\n' "$id"
                        continue
                    fi
                    ;;
                *SLEEP*)
                    update '{"sessionUpdate":"tool_call","toolCallId":"8","title":"sleep","kind":"execute","status":"in_progress"}'
                    setsid sleep 300 </dev/null >/dev/null 2>&1 &
                    leads=$!
                    (trap '' TERM; sleep 300 </dev/null >/dev/null 2>&1) &
                    echo "sleeps $leads $!" >> heard
                    read -r reply
                    printf 'cancelled %s\n' "$reply" >> heard
                    answer '{"stopReason":"cancelled"}'
                    continue
                    ;;
                *STAY*)
                    setsid sleep 300 </dev/null >/dev/null 2>&1 &
                    echo "stays $PPID $$ $!" >> heard
                    ;;
                *ASK*)
                    case $line in *ASKTWICE*) requests='900 901' ;; *) requests=900 ;; esac
                    for request in $requests; do
                        printf '{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"%s","toolCall":{"toolCallId":"c%s","title":"make","kind":"execute","rawInput":{"command":"make"}},"options":[{"optionId":"allow-it","name":"Yes","kind":"allow_once"},{"optionId":"refuse-it","name":"No","kind":"reject_once"}]}}\n' "$request" "$session" "$request"
                        read -r reply
                        printf 'answered %s\n' "$reply" >> heard
                    done
                    ;;
                *REPLY*)
                    given() { printf '%s\n' "$tools" | sed -n "s/.*$1\":*\"\([^\"]*\)\".*/\1/p"; }
                    me=$(given 'BRIGADE_AS","value')
                    "$(given command)" --team "$(given 'BRIGADE_TEAM","value')" --as "$me" \
                        send team-lead "REPLY of $me" </dev/null >> heard
                    ;;
                *TALK*) update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I am talking"}}' ;;
                *WORK*)
                    for number in $(seq 50); do
                        update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$number \"}}"
                    done
                    update '{"sessionUpdate":"tool_call","toolCallId":"7","title":"make","kind":"execute","status":"in_progress"}'
                    update '{"sessionUpdate":"tool_call_update","toolCallId":"7","status":"completed"}'
                    update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It is\nmade."}}'
                    ;;
                *EDIT*)
                    update '{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit a","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/a","oldText":"1\n2\n","newText":"1\ntwo\u001b[2J\n"}]}'
                    update '{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}'
                    ;;
            esac
            answer '{"stopReason":"end_turn"}'
            case $line in *LAST*) exit 3 ;; esac
            ;;
    esac
done
