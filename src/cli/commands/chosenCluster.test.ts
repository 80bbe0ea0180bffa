/** Which cluster a command takes, and what it says where there is none, or the name stands in another place than it should. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand, running } from '#testing/commandRun'
import { CommandError } from '../exitCodes.ts'

/** A kubeconfig whose current context is a cluster's. */
const current = (name: string, server = running.server) =>
  JSON.stringify({ clusters: [{ name, cluster: { server } }], contexts: [{ name, context: { cluster: name, user: name } }], 'current-context': name })

for (const [kubeconfig, says, calls] of [
  [current('skiff-lab'), /^Cluster "lab": kubectl's current context is skiff-lab$/m, ['save lab f.db']],
  // Of another SKIFF_HOME, of no cluster that is there, of another program, no kubeconfig.
  [current('skiff-lab', 'https://127.0.0.1:1'), /^((?!context).)*$/s, ['save skiff f.db']],
  [current('skiff-gone'), /^((?!context).)*$/s, ['save skiff f.db']],
  [current('work'), /^((?!context).)*$/s, ['save skiff f.db']],
  ['clusters: [', /^((?!context).)*$/s, ['save skiff f.db']],
  ['', /^((?!context).)*$/s, ['save skiff f.db']],
] as const) {
  test(`of several clusters a command takes that of the current context, with ${kubeconfig === '' ? 'no kubeconfig' : kubeconfig}`, async () => {
    const done = await runCommand(['snapshot', 'save', 'f.db'], {}, ['lab', 'skiff'], kubeconfig)
    assert.equal(done.error, undefined)
    assert.deepEqual(done.calls, calls)
    assert.match(done.stderr, says)
  })
}

test('ETC-20 snapshot restore without a name is refused where there are several clusters', async () => {
  const { error, calls } = await runCommand(['snapshot', 'restore', 'f.db'], {}, ['lab', 'skiff'], current('skiff-lab'))
  assert.match(String(error), /there are several clusters: lab, skiff/)
  assert.deepEqual(calls, [])
})

for (const flag of ['--cluster', '--context', '--kubeconfig']) {
  test(`X5 at refuses ${flag} behind WHEN, where kubectl would take it`, async () => {
    const { error } = await runCommand(['at', '-10s', 'get', 'pods', flag, 'lab'], {}, ['lab', 'skiff'])
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.equal(error.message, `${flag} comes before WHEN: skiff at ${flag} … WHEN get …`)
  })
}
