#compdef brigade
# Completion of brigade for zsh.
_brigade() {
    local -a lines values shown
    local line description
    integer longest=0
    lines=("${(@f)$(command brigade __complete zsh "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    case $lines[1] in
    files) _files ;;
    folders) _files -/ ;;
    words)
        for line in "${(@)lines[2,-1]}"; do
            values+=("${line%%$'\t'*}")
            (( ${#values[-1]} > longest )) && longest=${#values[-1]}
        done
        for line in "${(@)lines[2,-1]}"; do
            description=${line#*$'\t'}
            shown+=("${(r:longest:)${line%%$'\t'*}}${description:+  -- $description}")
        done
        # Show one value per line only if there is something to say about it.
        if [[ ${(j::)${(@)lines[2,-1]#*$'\t'}} == '' ]]; then
            compadd -V brigade -a values
        else
            compadd -V brigade -l -d shown -a values
        fi
        ;;
    esac
}
if [[ $funcstack[1] == _brigade ]]; then
    _brigade "$@"
else
    compdef _brigade brigade
fi
