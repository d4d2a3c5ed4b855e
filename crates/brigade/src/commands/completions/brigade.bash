# Completion of brigade for bash.
_brigade() {
    local lines kind value word=${COMP_LINE:0:COMP_POINT} before=
    COMPREPLY=()
    mapfile -t lines < <(command brigade __complete bash "$word" 2>/dev/null)
    kind=${lines[0]-}
    case $kind in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
    words)
        # Bash replaces only the part of the word after the last of these characters.
        word=${word##*[[:space:]]}
        if [[ $word == *["$COMP_WORDBREAKS"]* ]]; then
            before=${word%"${word##*["$COMP_WORDBREAKS"]}"}
        fi
        for value in "${lines[@]:1}"; do
            COMPREPLY+=("${value#"$before"}")
        done
        ;;
    esac
}
complete -o nosort -F _brigade brigade
