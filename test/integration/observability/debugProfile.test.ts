/** What `skiff debug profile` asks for, and what it makes of the answer. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { VirtualClock } from '#base/virtualClock'
import { CommandError } from '#cli/exitCodes'
import { readProfile } from '#cli/profile/readProfile'
import { type ProfileRequest, profilePath, takeProfile } from '#cli/profile/takeProfile'
import { describeSummary, topFunctions } from '#cli/profile/topFunctions'
import type { HttpTransport } from '#client/httpTransport'
import { encodeProfile, sampledCpu } from '#main/component/pprofProfile'

const callFrame = (functionName: string, lineNumber: number) => ({ functionName, url: 'file:///work/src/a.js', lineNumber, scriptId: '1', columnNumber: 0 })

/** 2 ms in inner, 1 ms in outer, which calls it. */
const recorded = sampledCpu({
  nodes: [
    { id: 1, callFrame: callFrame('(root)', -1), children: [2] },
    { id: 2, callFrame: callFrame('outer', 9), children: [3] },
    { id: 3, callFrame: callFrame('inner', 19) },
  ],
  samples: [3, 3, 2],
  timeDeltas: [1500, 500, 1000],
  startTime: 0,
  endTime: 5_000_000,
})
const compressed = gzipSync(encodeProfile(recorded, 0))

const request: ProfileRequest = { component: 'apiserver', type: 'cpu', seconds: 5, isLocal: true }

function transportOf(status: number, body: string | Buffer, asked: string[] = []): HttpTransport {
  const forward: HttpTransport['forward'] = async ({ target }) => {
    asked.push(target)
    return { status, headers: {}, body: Readable.from([Buffer.from(body)]) }
  }
  return { forward } as unknown as HttpTransport
}

const take = (status: number, body: string | Buffer, wanted: Partial<ProfileRequest> = {}, asked: string[] = []) => {
  const whole = { ...request, ...wanted }
  return takeProfile(transportOf(status, body, asked), new VirtualClock(), profilePath(whole), whole)
}

test('OBS-16 skiff debug profile lists the functions by what they used themselves, with place and share', async () => {
  const summary = topFunctions(await readProfile(compressed), 10)
  assert.equal(
    describeSummary(summary),
    `cpu: 3.0 ms in 5.0 s
      self  share  function
    2.0 ms  66.7%  inner  src/a.js:20
    1.0 ms  33.3%  outer  src/a.js:10
`,
  )
  assert.equal(topFunctions(await readProfile(compressed), 1).functions.length, 1)
  assert.match(describeSummary(topFunctions({ types: [], samples: [], durationNs: 0 }, 10)), /no samples: nothing ran in that time/)
})

test('OBS-16 skiff debug profile asks the API server, or a kubelet through it, for pprof of the type and time', async () => {
  const asked: string[] = []
  assert.deepEqual(await take(200, compressed, {}, asked), compressed)
  await take(200, compressed, { component: 'node/a b', type: 'heap' }, asked)
  await take(200, compressed, { component: 'kube-scheduler' }, asked)
  assert.deepEqual(asked, ['/debug/pprof/profile?seconds=5', '/api/v1/nodes/a%20b/proxy/debug/pprof/heap?seconds=5', '/debug/pprof/profile?seconds=5'])
})

const status = (message: string) => JSON.stringify({ kind: 'Status', message })
const refusals: readonly {
  readonly name: string
  readonly code: number
  readonly body: string
  readonly wanted?: Partial<ProfileRequest>
  readonly exit: string
  readonly says: RegExp
}[] = [
  { name: 'profiles that are off', code: 404, body: status('not found'), exit: 'unmetPrerequisite', says: /serves no profiles.*--profiling=false/ },
  { name: 'a kubelet without profiles', code: 405, body: 'off', wanted: { component: 'node/n' }, exit: 'unmetPrerequisite', says: /enableProfilingHandler/ },
  {
    name: 'a simulated node',
    code: 404,
    body: '404: Page Not Found',
    wanted: { component: 'node/n' },
    exit: 'unmetPrerequisite',
    says: /skiff debug profile apiserver/,
  },
  { name: 'a missing node', code: 404, body: status('nodes "n" not found'), wanted: { component: 'node/n' }, exit: 'notFound', says: /kubectl get nodes/ },
  { name: 'a missing right', code: 403, body: status('forbidden'), exit: 'unmetPrerequisite', says: /needs the right to get the path/ },
  { name: 'a profile under way', code: 500, body: 'it is already in use', exit: 'conflict', says: /wait until it ends/ },
  { name: 'any other failure', code: 503, body: status('no leader'), exit: 'internal', says: /answers 503: no leader/ },
]
for (const { name, code, body, wanted, exit, says } of refusals)
  test(`OBS-16 skiff debug profile says what to do about ${name}`, async () => {
    await assert.rejects(
      take(code, body, wanted),
      (error) => error instanceof CommandError && error.exit === exit && says.test(`${error.message} ${error.hint}`),
    )
  })

test('OBS-16 skiff debug profile refuses other components, and names the port of those that the API server does not lead to', () => {
  const refused = (wanted: Partial<ProfileRequest>, says: RegExp) =>
    assert.throws(
      () => profilePath({ ...request, ...wanted }),
      (error) => error instanceof CommandError && says.test(`${error.message} ${error.hint}`),
    )
  refused({ component: 'etcd' }, /expected apiserver, controller-manager, scheduler or node\/NAME/)
  refused({ component: 'scheduler', isLocal: false }, /https:\/\/127\.0\.0\.1:10259\/debug\/pprof\/profile/)
})

test('OBS-16 bytes that are no profile are refused', async () => {
  await assert.rejects(readProfile(Buffer.from('<html>')))
  await assert.rejects(readProfile(gzipSync(Buffer.from([0xff, 0xff, 0xff]))))
})
