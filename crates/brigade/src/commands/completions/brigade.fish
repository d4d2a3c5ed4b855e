# Completion of brigade for fish.
function __brigade_complete
    set -l current (commandline --current-token)
    set -l lines (command brigade __complete fish (commandline --current-process --tokenize --cut-at-cursor) "$current" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$current"
        case folders
            __fish_complete_directories "$current" ''
        case words
            set -e lines[1]
            string join \n -- $lines
    end
end
complete --command brigade --no-files --keep-order --arguments '(__brigade_complete)'
