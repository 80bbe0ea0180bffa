/** Which cluster a command takes, and what it says where there is none, or the name stands in another place than it should. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseYaml } from '#api/machinery/yaml'
import { runCommand, running } from '#testing/commandRun'
import type { ClusterManager } from '../clusterManager.ts'
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
  test(`a command without a name takes the cluster of the current context, with ${kubeconfig === '' ? 'no kubeconfig' : kubeconfig}`, async () => {
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

for (const [words, hint] of [
  ['addon ls lab', '--cluster lab'],
  ['addon enable ingress lab', '--cluster lab'],
  ['etcd member ls lab', '--cluster lab'],
  ['snapshot save f.db lab', '--cluster lab'],
  ['token list lab', '--cluster lab'],
  ['snapshot save lab f.db', '--cluster lab'],
  ['image ls lab', '--name lab'],
] as const) {
  test(`a cluster's name as a word is refused with its flag: skiff ${words}`, async () => {
    const { error, calls } = await runCommand(words.split(' '), {}, ['lab'])
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.equal(error.message, `"${words.split(' ').at(-1)}" is a word too many`)
    assert.match(error.hint ?? '', new RegExp(`as in: ${hint}$`))
    assert.deepEqual(calls, [])
  })
}

for (const flag of ['--cluster', '--name']) {
  test(`a command takes its cluster by ${flag}, and with both flags only if they agree`, async () => {
    for (const [words, calls] of [
      ['snapshot save f.db', ['save lab f.db']],
      ['nodegroup scale small 3', ['scale small of lab to 3']],
    ] as const)
      assert.deepEqual((await runCommand([...words.split(' '), flag, 'lab'], {}, ['lab', 'skiff'])).calls, calls)
    const both = (other: string) =>
      runCommand(['snapshot', 'save', 'f.db', flag, 'lab', flag === '--name' ? '--cluster' : '--name', other], {}, ['lab', 'skiff'])
    assert.deepEqual((await both('lab')).calls, ['save lab f.db'])
    assert.match(String((await both('skiff')).error), /give --name or --cluster, not both/)
  })
}

/** Contexts as up merges them, of clusters in /home. */
const merged = (...names: string[]) => {
  const context = (name: string) => ({
    cluster: `skiff-${name}`,
    user: `skiff-${name}`,
    extensions: [{ name: 'skiff.dev/cluster', extension: { directory: `/home/clusters/${name}` } }],
  })
  const contexts = names.map((name) => ({ name: `skiff-${name}`, context: context(name) }))
  // Made by others: the same name without the mark, and the mark of a cluster that is gone under another name.
  const foreign = [
    { name: 'skiff-plain', context: { cluster: 'skiff-plain', user: 'skiff-plain' } },
    { name: 'mine', context: context('gone') },
  ]
  return JSON.stringify({ contexts: [...contexts, ...foreign], 'current-context': contexts[0]?.name ?? '' })
}
const contextsOf = (text: string) => (parseYaml(text) as { contexts: { name: string }[] }).contexts.map(({ name }) => name)

for (const words of ['prune', 'delete gone']) {
  test(`${words} takes the context of a cluster that is gone out of the kubeconfig, and no other`, async () => {
    const { kubeconfig, stdout, stderr, error } = await runCommand(words.split(' '), {}, ['lab'], merged('gone', 'lab'))
    assert.equal(error, undefined)
    assert.deepEqual(contextsOf(kubeconfig), ['skiff-lab', 'skiff-plain', 'mine'])
    assert.match(kubeconfig, /^current-context: ""$/m)
    assert.match(stdout + stderr, /removed (its )?context skiff-gone of \S+config$/m)
    const dry = await runCommand([...words.split(' '), '--dry-run'], {}, ['lab'], merged('gone', 'lab'))
    assert.equal(dry.kubeconfig, merged('gone', 'lab'))
    assert.match(dry.stdout + dry.stderr, /would remove (its )?context skiff-gone of \S+config$/m)
  })
}

test('up marks the context with the directory of the cluster, and kubeconfig get does not', async () => {
  const kubeconfig: ClusterManager['kubeconfig'] = async () => ({
    name: 'skiff-b',
    server: 'https://h',
    ca: '',
    clientCert: '',
    clientKey: '',
    directory: '/home/clusters/b',
  })
  assert.match((await runCommand(['up', 'b'], { kubeconfig })).kubeconfig, /directory: \/home\/clusters\/b/)
  assert.doesNotMatch((await runCommand(['kubeconfig', 'get', 'a'], { kubeconfig })).stdout, /directory/)
})

const restored = async (name: string) => ({ ...running, name, server: '', running: false, ready: false, nodes: [], restored: true })
test('ETC-20 ls and status show a cluster that was restored and never started', async () => {
  assert.equal((await runCommand(['ls'], { status: restored })).stdout, 'NAME   STATE      NODES   SERVER\na      Restored   0\n')
  assert.match((await runCommand(['status'], { status: restored })).stdout, /^state: +Restored, and never started: skiff up a$/m)
})
