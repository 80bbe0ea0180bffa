import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { GrpcError } from '#grpc/grpcError'
import { annotatedBehaviour, simulatedAnnotations } from './annotations.ts'
import { lastLines, maxLogLines } from './logLines.ts'
import { defaultProfile } from './profile.ts'
import { type Container, events, log, type State } from './state.ts'

const behaviourOf = (annotations: Record<string, string>) =>
  annotatedBehaviour(
    { namespace: 'default', podName: 'pod', labels: {}, annotations, name: 'main', image: 'image', isInit: false, restartCount: 0 },
    seededRandom(1),
  )

test('X2 the annotated logs are the last lines of the text, it has more than a log keeps', () => {
  const text = Array.from({ length: 120_000 }, (_, i) => `${i}`).join('\n')
  const lines = [...(behaviourOf({ [simulatedAnnotations.logs]: text }).logs ?? [])]
  assert.equal(lines.length, maxLogLines)
  assert.deepEqual([lines[0], lines.at(-1)], ['110000', '119999'])
})

test('X2 lines equal those of a split, the text is short', () => {
  for (const text of ['', '\n', 'a', '\na', 'a\n', 'a\n\nb']) assert.deepEqual(lastLines(text), text.split('\n'), JSON.stringify(text))
})

test('X2 a schedule of more results than a probe may read is refused, and the refusal is short', () => {
  const refusal = (error: unknown) => error instanceof GrpcError && error.message.length < 500
  assert.throws(() => behaviourOf({ [simulatedAnnotations.readiness]: Array(50_000).fill('pass 1s').join(',') }), refusal)
})

test('X2 a number is refused, it is too large to count with', () => {
  for (const key of ['exitCode', 'exitAfterSeconds', 'memoryBytes'] as const) {
    assert.throws(() => behaviourOf({ [simulatedAnnotations[key]]: '9'.repeat(400) }), GrpcError, key)
  }
})

test('X2 a container that prints more lines than its log keeps sends one event while its changes are unread', { timeout: 20_000 }, async () => {
  const lines = Array.from({ length: 120_000 }, (_, i) => `${i}`)
  const stop = new AbortController()
  const clock = new VirtualClock()
  const state: State = {
    ...{ clock, random: seededRandom(1), profile: defaultProfile, sandboxes: new Map(), containers: new Map(), byPod: new Map(), images: new Map() },
    ...{ listeners: new Set(), failedPulls: new Map(), addresses: { cidr: '10.0.0.0/24', next: 1, assigned: true, used: new Set<string>() } },
  }
  const container = { logs: [], status: { id: 'a' } } as unknown as Container
  const told: string[] = []
  const first = events(state, stop.signal)
  const next = first.next()
  state.listeners.add(({ containerId }) => told.push(containerId))
  log(state, container, lines)
  for (let i = 0; i < 2_000; i++) log(state, container, ['more'])
  assert.equal((await next).value?.containerId, 'a')
  assert.equal(told.length, 2_001)
  assert.ok(container.logs.length <= maxLogLines * 1.1, `${container.logs.length}`)
  assert.equal(container.logs.at(-1)?.text, 'more')
  const rest = first.next()
  stop.abort()
  assert.equal((await rest).done, true, 'changes of one container wait as one')
})
