/**
 * Recorded CNI plugins (L3): scripts in the runtime's directory of plugins that run a plugin and leave a note of the call. The runtime makes these calls, so no other
 * program of the node sees them. callNotes.ts reads the notes.
 */
import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { makePrivateDirectory } from '#host/files'

/** A plugin of this name records the plugin whose name follows. */
export const recorderPrefix = 'skiff-record-'

/** Notes that wait for the agent; the calls after them are not recorded. Each call has two. */
const mostNotes = 400

/** Commands that ask, such as VERSION, are not recorded. */
const recordedCommands = 'ADD|DEL|CHECK'

/**
 * A shell's own words cost no process: the script starts the plugin and nothing else. It reads the time from no clock, since the two files of a note have the times at
 * which they were written. Whatever keeps it from writing a note, the plugin runs.
 */
export function recorderScript(notes: string): string {
  return `#!/bin/sh
# Runs the CNI plugin whose name follows ${recorderPrefix} in the name of this file, and leaves a note of the call for the agent of the node.
name=\${0##*/${recorderPrefix}}
plugin=\${0%/*}/$name
notes=${notes}
set -- $notes/*
case $CNI_COMMAND in
  ${recordedCommands}) [ -d $notes ] && [ $# -le ${mostNotes} ] || exec "$plugin" ;;
  *) exec "$plugin" ;;
esac
config=
while IFS= read -r line || [ -n "$line" ]; do
  config=$config$line
done
note=$notes/$$-$CNI_COMMAND-$name
printf '%s\\n' "$CNI_COMMAND $name" "$CNI_CONTAINERID" "$CNI_NETNS" "$CNI_IFNAME" "$CNI_ARGS" "$config" 2>/dev/null >$note.call
answer=$("$plugin" <<END
$config
END
)
code=$?
printf '%s' "$answer"
printf '%s\\n' $code "$answer" end 2>/dev/null >$note.answer
exit $code
`
}

/**
 * Puts the scripts into the directory where the runtime looks for plugins.
 * @param notes a directory for the agent alone, without spaces in its path
 */
export async function installRecorder(directory: string, notes: string, network: Readonly<Record<string, unknown>>): Promise<void> {
  await makePrivateDirectory(notes)
  const script = recorderScript(notes)
  for (const { type } of pluginsOf(network)) {
    const file = path.join(directory, `${recorderPrefix}${type}`)
    if ((await readFile(file, 'utf8').catch(() => '')) === script) continue
    await writeFile(`${file}.new`, script)
    await chmod(`${file}.new`, 0o755)
    await rename(`${file}.new`, file)
  }
}

/** The same network with recorded plugins. */
export function recordedNetwork(network: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { ...network, plugins: pluginsOf(network).map((plugin) => ({ ...plugin, type: `${recorderPrefix}${plugin.type}` })) }
}

function pluginsOf(network: Readonly<Record<string, unknown>>): readonly { readonly type: string }[] {
  return network.plugins as readonly { readonly type: string }[]
}
