/** Recorded CNI plugins: what the runtime gets, what the note says, and that the plugin runs whatever keeps the note from being written. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { realClock } from '#testing/realClock'
import { type CniCall, createCallNotes, takeNotes } from './callNotes.ts'
import { installRecorder, recordedNetwork } from './recorder.ts'

const plugin = `#!/bin/sh
config=$(cat)
[ "$CNI_COMMAND" != DEL ] || exit 3
case $config in *broken*) printf '{"code":7,"msg":"broken"}'; exit 1 ;; esac
printf '{"command":"%s","got":%s}' "$CNI_COMMAND" "$config"
`

interface Place {
  readonly notes: string
  /** Runs the recorded plugin. */
  call(command: string, config: string): { readonly status: number | null; readonly stdout: string; readonly stderr: string }
  /** Reads the notes. */
  taken(nowMs?: number): Promise<CniCall[]>
}

async function withRecorder(work: (place: Place) => Promise<void>): Promise<void> {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-recorder-'))
  const notes = path.join(directory, 'notes')
  const env = { PATH: '/usr/bin:/bin', CNI_CONTAINERID: 'c1', CNI_NETNS: '/run/netns/p', CNI_IFNAME: 'eth0' }
  const args = 'IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=u-1'
  try {
    await fs.writeFile(path.join(directory, 'ptp'), plugin, { mode: 0o755 })
    await installRecorder(directory, notes, { plugins: [{ type: 'ptp' }] })
    await work({
      notes,
      call: (command, config) =>
        spawnSync(path.join(directory, 'skiff-record-ptp'), { input: config, encoding: 'utf8', env: { ...env, CNI_ARGS: args, CNI_COMMAND: command } }),
      taken: async (nowMs = Date.now()) => {
        const calls: CniCall[] = []
        await takeNotes({ clock: { ...realClock, now: () => nowMs }, log: noLog, take: (call) => calls.push(call) }, notes)
        return calls
      },
    })
  } finally {
    await fs.rm(directory, { recursive: true })
  }
}

test('LRN-07 a recorded CNI plugin gets the configuration as it is, and its answer and exit code reach the runtime', () =>
  withRecorder(async ({ call, taken, notes }) => {
    const config = '{"name":"skiff","text":"a $HOME `b` \\\\n  c","list":[1,\n 2]}'
    const { status, stdout, stderr } = call('ADD', config)
    assert.deepEqual([status, stderr], [0, ''])
    assert.deepEqual(JSON.parse(stdout), { command: 'ADD', got: JSON.parse(config) })
    const [noted] = await taken()
    const { time, milliseconds, request, answer, ...rest } = noted ?? ({} as CniCall)
    assert.deepEqual(rest, { api: 'CNI', method: 'ADD ptp', code: 'OK', pod: 'shop/web', podUid: 'u-1' })
    assert.ok(Date.now() - Date.parse(time) < 60_000 && (milliseconds ?? -1) >= 0, `${time} ${milliseconds}`)
    const { args: _, ...given } = JSON.parse(request) as Record<string, unknown>
    assert.deepEqual(given, { containerId: 'c1', netns: '/run/netns/p', ifname: 'eth0', config: JSON.parse(config) })
    assert.deepEqual(JSON.parse(answer ?? ''), JSON.parse(stdout))
    assert.deepEqual(await fs.readdir(notes), [])
  }))

test('LRN-07 a CNI plugin that fails is recorded with its message, or with its exit status', () =>
  withRecorder(async ({ call, taken }) => {
    assert.equal(call('CHECK', '"broken"').status, 1)
    assert.equal(call('DEL', '{}').status, 3)
    const calls = await taken()
    const shown = calls.map(({ method, code, answer }) => `${method} ${code} ${answer}`).sort()
    assert.deepEqual(shown, ['CHECK ptp FAILED {"code":7,"msg":"broken"}', 'DEL ptp FAILED exit status 3'])
  }))

test('LRN-07 a CNI plugin runs without a note when it is only asked for its version, when notes have no place, and when too many wait', () =>
  withRecorder(async ({ call, taken, notes }) => {
    assert.equal(call('VERSION', '{}').stdout, '{"command":"VERSION","got":{}}')
    assert.deepEqual(await taken(), [])
    for (let index = 0; index <= 400; index++) await fs.writeFile(path.join(notes, `${index}.answer`), '')
    assert.equal(call('ADD', '{}').stdout, '{"command":"ADD","got":{}}')
    assert.equal((await fs.readdir(notes)).length, 401)
    await fs.rm(notes, { recursive: true })
    assert.equal(call('ADD', '{}').stdout, '{"command":"ADD","got":{}}')
  }))

test('LRN-07 the note of a CNI plugin that never answers is read after five minutes, and that of one that runs is left', () =>
  withRecorder(async ({ taken, notes }) => {
    await fs.writeFile(path.join(notes, '7-ADD-ptp.call'), 'ADD ptp\nc1\n/run/netns/p\neth0\n\n{}\n')
    await fs.writeFile(path.join(notes, '7-ADD-ptp.answer'), '0\n{"ips"')
    await fs.writeFile(path.join(notes, '8-DEL-ptp.answer'), '0\n\nend\n')
    assert.deepEqual(await taken(), [])
    assert.deepEqual((await fs.readdir(notes)).sort(), ['7-ADD-ptp.answer', '7-ADD-ptp.call'])
    const [late] = await taken(Date.now() + 6 * 60_000)
    assert.deepEqual([late?.method, late?.code, late?.pod], ['ADD ptp', undefined, undefined])
    assert.deepEqual(await fs.readdir(notes), [])
  }))

test('LRN-07 the agent takes the notes that it finds, and those that come', () =>
  withRecorder(async ({ call, notes }) => {
    call('ADD', '{}')
    const methods: string[] = []
    const stop = new AbortController()
    let arrived = () => {}
    const next = () =>
      new Promise<void>((resolve) => {
        arrived = resolve
      })
    const first = next()
    const take = ({ method }: CniCall) => {
      methods.push(method)
      arrived()
    }
    const done = createCallNotes({ clock: realClock, log: noLog, take }, notes).run(stop.signal)
    await first
    const second = next()
    call('DEL', '{}')
    await second
    stop.abort()
    await done
    assert.deepEqual(methods, ['ADD ptp', 'DEL ptp'])
  }))

test('LRN-07 a network with recorded plugins differs in the types of its plugins alone', () => {
  const network = { name: 'skiff', plugins: [{ type: 'ptp', ipam: { type: 'host-local' } }, { type: 'portmap' }] }
  assert.deepEqual(recordedNetwork(network), {
    name: 'skiff',
    plugins: [{ type: 'skiff-record-ptp', ipam: { type: 'host-local' } }, { type: 'skiff-record-portmap' }],
  })
})
