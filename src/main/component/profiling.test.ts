import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { Answer } from '#apiserver/core/answer'
import type { ServerRequest } from '#apiserver/core/request'
import { pprofProto } from '#grpc/proto/pprof'
import { loadMessage } from '#grpc/protoMessage'
import { createRealClock } from '../realClock.ts'
import { encodeProfile, resourcesText, sampledCpu, sampledHeap } from './pprofProfile.ts'
import { profiling } from './profiling.ts'

const callFrame = (functionName: string, lineNumber: number) => ({ functionName, url: 'file:///a.js', lineNumber, scriptId: '1', columnNumber: 0 })

test('OBS-16 a CPU profile keeps stacks, counts and times, and leaves sleep and the profiler out', () => {
  const profile = sampledCpu({
    nodes: [
      { id: 1, callFrame: callFrame('(root)', -1), children: [2, 4, 5] },
      { id: 2, callFrame: callFrame('outer', 9), children: [3] },
      { id: 3, callFrame: callFrame('inner', 19) },
      { id: 4, callFrame: callFrame('(idle)', -1) },
      { id: 5, callFrame: { ...callFrame('post', 1), url: 'node:inspector' }, children: [6] },
      { id: 6, callFrame: callFrame('dispatch', -1) },
    ],
    samples: [3, 4, 3, 2, 6],
    timeDeltas: [100, 5000, 300, 50, 70],
    startTime: 0,
    endTime: 6000,
  })
  const frame = (name: string, line: number) => ({ name, file: 'file:///a.js', line })
  assert.deepEqual(profile.samples, [
    { frames: [frame('inner', 20), frame('outer', 10)], values: [2, 400_000] },
    { frames: [frame('outer', 10)], values: [1, 50_000] },
  ])
  assert.equal(profile.durationNs, 6_000_000)
})

test('OBS-16 an encoded profile names each function once, and its first text is empty', () => {
  const head = {
    callFrame: callFrame('(root)', -1),
    selfSize: 0,
    id: 1,
    children: [{ callFrame: callFrame('alloc', 4), selfSize: 64, id: 2, children: [{ callFrame: callFrame('alloc', 4), selfSize: 8, id: 3, children: [] }] }],
  }
  const bytes = encodeProfile(sampledHeap({ head, samples: [{ nodeId: 2 }, { nodeId: 2 }] }), 1000)
  const read = loadMessage(pprofProto, 'perftools.profiles.Profile').decode(bytes) as Record<'stringTable' | 'function' | 'sample', unknown[]>
  assert.deepEqual(read.stringTable, ['', 'inuse_objects', 'count', 'inuse_space', 'bytes', 'alloc', 'file:///a.js'])
  assert.equal(read.function.length, 1)
  assert.deepEqual(read.sample, [
    { locationId: [1], value: [2, 64] },
    { locationId: [1, 1], value: [1, 8] },
  ])
})

test('OBS-16 open resources are counted by kind, most first', () => {
  assert.equal(resourcesText(['Timeout', 'TCPSocketWrap', 'Timeout']), 'goroutine profile: total 3\n2 @\n#\tTimeout\n\n1 @\n#\tTCPSocketWrap\n')
})

const hasGo = (() => {
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

test('OBS-16 go tool pprof reads the CPU profile and names the busy function', { skip: hasGo ? false : 'needs the Go toolchain' }, async () => {
  const page = profiling(createRealClock())
  const request = (query: string) =>
    ({ path: '/debug/pprof/profile', query: new URLSearchParams(query), cancellation: { signal: new AbortController().signal } }) as unknown as ServerRequest
  let isOver = false
  const recording = Promise.resolve(page.handle(request('seconds=1')) as Promise<Answer>).finally(() => {
    isOver = true
  })
  await busyFunctionOfTheTest(() => isOver)
  const answer = await recording
  assert.ok(answer.type === 'bytes')
  const folder = mkdtempSync(path.join(tmpdir(), 'pprof-'))
  try {
    const file = path.join(folder, 'profile.pb.gz')
    writeFileSync(file, answer.bytes)
    assert.ok(gunzipSync(answer.bytes).length > 0)
    const top = execFileSync('go', ['tool', 'pprof', '-top', file], { encoding: 'utf8' })
    assert.match(top, /Type: cpu/)
    assert.match(top, /busyFunctionOfTheTest/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** The work is its own: the engine may count a small function among the callers that it is built into. */
async function busyFunctionOfTheTest(isOver: () => boolean): Promise<void> {
  for (let sum = 0; !isOver() && sum < Number.POSITIVE_INFINITY; ) {
    for (let at = 0; at < 200_000; at++) sum += Math.sqrt(at) * Math.sin(at)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
