/** A kubelet requests certificates for pods, refreshes them, and says why there is none. */
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { PodCertificateProjection } from '#api/gen/types/core.v1'
import { parseRequestDer } from '#api/kinds/certificates/pkcs10'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { formatTime } from '#base/time'
import { VirtualClock } from '#base/virtualClock'
import { signatureFault } from '#client/requestSignature'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { OnChange } from '../core/listWatch.ts'
import { newKey } from './podCertificateKeys.ts'
import { startPodCertificates } from './podCertificates.ts'

const minuteMs = 60_000
const place = { volumeName: 'v', sourceIndex: 1 }
const owner = { mode: 0o600 }
const pem = (label: string, body: string) => `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`

function podWith(podCertificate: Partial<PodCertificateProjection>): FrozenPod {
  const source = { signerName: 'example.com/s', keyType: 'ED25519', credentialBundlePath: 'both', ...podCertificate }
  const volumes = [{ name: 'v', projected: { sources: [{ secret: { name: 's' } }, { podCertificate: source }] } }]
  return { metadata: { namespace: 'ns', name: 'p', uid: 'u1' }, spec: { serviceAccountName: 'sa', volumes, containers: [] } } as unknown as FrozenPod
}

interface World {
  readonly clock: VirtualClock
  readonly pods: FrozenPod[]
  readonly requests: PodCertificateRequest[]
  readonly events: string[]
  /** Name of the state → how many sources are in it. */
  readonly states: Map<string, number>
  /** The files as texts; the error's message while there are none. */
  read(): Record<string, string> | string
  /** Waits until the manager has asked for so many certificates. */
  asked(count: number): Promise<PodCertificateRequest>
  answer(request: PodCertificateRequest, status: PodCertificateRequest['status']): Promise<void>
  issue(request: PodCertificateRequest, body: string): Promise<void>
  drop(request: PodCertificateRequest): void
  /** While it is not empty, the API server refuses to read ServiceAccounts. */
  refusal: string
  /** How often a ServiceAccount was read. */
  accountReads: number
}

async function withManager(podCertificate: Partial<PodCertificateProjection>, run: (world: World) => Promise<void>): Promise<void> {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const stop = new AbortController()
  const pods = [podWith(podCertificate)]
  const [requests, shown, events]: [PodCertificateRequest[], Map<string, PodCertificateRequest>, string[]] = [[], new Map(), []]
  const states = new Map<string, number>()
  let tell: OnChange<PodCertificateRequest> = () => {}
  const accounts = { refusal: '', accountReads: 0 }
  const client = {
    of: ({ kind }: { kind: string }) => ({
      get: async ({ name }: { name: string }) => {
        if (kind === 'ServiceAccount') accounts.accountReads++
        if (kind === 'ServiceAccount' && accounts.refusal !== '') throw new Error(accounts.refusal)
        return { metadata: { uid: `${kind}-${name}` } }
      },
      create: async (body: PodCertificateRequest) => {
        const made = { ...body, metadata: { ...body.metadata, name: `req-${requests.length}`, creationTimestamp: formatTime(clock.now()) }, status: {} }
        requests.push(made)
        shown.set(`ns/${made.metadata.name}`, made)
        return made
      },
    }),
  }
  const objects = (_: unknown, __: unknown, signal: AbortSignal, onChange: typeof tell) => {
    tell = onChange
    const done = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    return { get: (key: string) => shown.get(key), list: () => [], synced: Promise.resolve(), done }
  }
  const gauge = () => ({
    ...noMetrics.gauge({ name: 'g', help: '' }),
    set: (value: number, { state }: { state: string }) => void states.set(state, value),
    remove: ({ state }: { state: string }) => void states.delete(state),
  })
  const context = {
    ...{ client, clock, log: noLog, random: { int: () => 0 }, sources: { objects }, metrics: { ...noMetrics, gauge } },
    config: { nodeName: 'n', featureGates: { PodCertificateRequest: true } },
    recorder: { event: (_: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`) },
  } as unknown as KubeletContext
  const certificates = startPodCertificates(context, () => pods, stop.signal)
  const settle = async () => {
    for (let i = 0; i < 20; i++) await clock.advance(0)
  }
  const answer: World['answer'] = async (request, status) => {
    const answered = { ...request, status }
    shown.set(`ns/${request.metadata.name}`, answered)
    tell(answered as never)
    await settle()
  }
  try {
    await run({
      ...{ clock, pods, requests, events, states, answer },
      get accountReads() {
        return accounts.accountReads
      },
      get refusal() {
        return accounts.refusal
      },
      set refusal(text) {
        accounts.refusal = text
      },
      read() {
        try {
          const files = certificates.files(pods[0] as FrozenPod, place, owner)
          return Object.fromEntries([...files].map(([path, { data }]) => [path, Buffer.from(data).toString()]))
        } catch (error) {
          return (error as Error).message
        }
      },
      async asked(count) {
        while (requests.length < count) {
          await new Promise((resolve) => setImmediate(resolve))
          await settle()
        }
        return requests[count - 1] as PodCertificateRequest
      },
      issue: (request, body) =>
        answer(request, {
          conditions: [{ type: 'Issued', status: 'True', reason: 'R', message: '', lastTransitionTime: '' }],
          certificateChain: `text\n${pem('CERTIFICATE', body)}`,
          notBefore: formatTime(clock.now()),
          beginRefreshAt: formatTime(clock.now() + 30 * minuteMs),
          notAfter: formatTime(clock.now() + 60 * minuteMs),
        }),
      drop: ({ metadata }) => void shown.delete(`ns/${metadata.name}`),
    })
  } finally {
    stop.abort()
    await clock.advance(0)
    await certificates.done
  }
}

for (const type of ['RSA3072', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'])
  test(`STO-03 a key of type ${type} comes with a request that it has signed, and that names nothing`, async () => {
    const { key, request } = await newKey(type)
    const parsed = parseRequestDer(Buffer.from(request, 'base64'))
    assert.ok(typeof parsed === 'object', String(parsed))
    assert.deepEqual([signatureFault(parsed), parsed.subject, parsed.dnsNames], [undefined, [], []])
    assert.deepEqual(createPublicKey(key).export({ type: 'spki', format: 'der' }), Buffer.from(parsed.publicKeyInfo))
  })

test('STO-03 a pod gets a key and the certificates that its signer issued for it, in the files that its volume names', async () => {
  await withManager({ keyPath: 'key', certificateChainPath: 'chain', maxExpirationSeconds: 4000, userAnnotations: { 'x.y/z': 'a' } }, async (world) => {
    assert.equal(world.read(), 'credential bundle is not issued yet')
    const request = await world.asked(1)
    const { stubPKCS10Request, ...spec } = request.spec
    assert.deepEqual(spec, {
      signerName: 'example.com/s',
      podName: 'p',
      podUID: 'u1',
      serviceAccountName: 'sa',
      serviceAccountUID: 'ServiceAccount-sa',
      nodeName: 'n',
      nodeUID: 'Node-n',
      maxExpirationSeconds: 4000,
      unverifiedUserAnnotations: { 'x.y/z': 'a' },
    })
    assert.deepEqual(request.metadata.ownerReferences, [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' }])
    assert.equal(world.states.get('not_yet_issued'), 1)
    await world.issue(request, 'QUJD')
    const files = world.read() as Record<string, string>
    assert.equal(files.chain, pem('CERTIFICATE', 'QUJD'))
    assert.equal(files.both, `${files.key}${files.chain}`)
    assert.ok(stubPKCS10Request && files.key?.startsWith('-----BEGIN PRIVATE KEY-----\n'))
    assert.deepEqual([...world.states], [['fresh', 1]])
  })
})

test('STO-03 a certificate is refreshed when its signer says so, and stays until the next one is issued', async () => {
  await withManager({}, async (world) => {
    world.read()
    await world.issue(await world.asked(1), 'QUJD')
    await world.clock.advance(29 * minuteMs)
    assert.equal(world.requests.length, 1)
    await world.clock.advance(2 * minuteMs)
    const second = await world.asked(2)
    const before = world.read()
    assert.match(JSON.stringify(before), /QUJD/)
    await world.issue(second, 'REVG')
    assert.match(JSON.stringify(world.read()), /REVG/)
    assert.notEqual(second.spec.stubPKCS10Request, world.requests[0]?.spec.stubPKCS10Request)
  })
})

test('KUB-23 a pod gets one event when its certificate is overdue, and one when it has expired', async () => {
  await withManager({}, async (world) => {
    world.read()
    await world.issue(await world.asked(1), 'QUJD')
    await world.clock.advance(31 * minuteMs)
    const second = await world.asked(2)
    await world.clock.advance(20 * minuteMs)
    assert.deepEqual([world.events, [...world.states]], [['Warning CertificateOverdueForRefresh PodCertificate refresh overdue'], [['overdue_for_refresh', 1]]])
    await world.clock.advance(20 * minuteMs)
    assert.deepEqual([world.events.slice(1), [...world.states]], [['Warning CertificateExpired PodCertificate expired'], [['expired', 1]]])
    assert.equal(second.metadata.name, 'req-1')
  })
})

for (const [type, state] of [
  ['Denied', 'denied'],
  ['Failed', 'failed'],
] as const)
  test(`STO-03 a request to which the signer answers ${type} is final: the pod gets an event, and no second request is made`, async () => {
    await withManager({}, async (world) => {
      world.read()
      const conditions = [{ type, status: 'True', reason: 'UnsupportedKeyType', message: 'use "RSA"', lastTransitionTime: '' }]
      await world.answer(await world.asked(1), { conditions })
      assert.equal(world.read(), `PodCertificateRequest was permanently ${state}: reason="UnsupportedKeyType" message="use \\"RSA\\""`)
      const what = type === 'Denied' ? 'was denied' : 'failed'
      assert.deepEqual(world.events, [`Warning ${type} PodCertificateRequest ns/req-0 ${what}, reason="UnsupportedKeyType", message="use \\"RSA\\""`])
      await world.clock.advance(60 * minuteMs)
      assert.deepEqual([world.requests.length, [...world.states]], [1, [[state, 1]]])
    })
  })

test('STO-03 a deleted request is made again after ten minutes', async () => {
  await withManager({}, async (world) => {
    world.read()
    world.drop(await world.asked(1))
    await world.clock.advance(9 * minuteMs)
    assert.equal(world.requests.length, 1)
    await world.clock.advance(4 * minuteMs)
    assert.equal((await world.asked(2)).metadata.name, 'req-1')
  })
})

test('STO-03 a source that fails for a day is tried about once in each longest wait, and succeeds when the cause is gone', async () => {
  await withManager({}, async (world) => {
    world.refusal = 'there is no such account'
    world.read()
    for (let minute = 0; minute < 24 * 60; minute++) await world.clock.advance(minuteMs)
    const before = world.accountReads
    for (let minute = 0; minute < 60; minute++) await world.clock.advance(minuteMs)
    // One of its own in a thousand seconds, and one with each look at all sources.
    assert.ok(world.accountReads - before <= 70, `${world.accountReads - before} in an hour`)
    world.refusal = ''
    await world.clock.advance(2 * minuteMs)
    assert.equal((await world.asked(1)).metadata.name, 'req-0')
  })
})

test('STO-03 the keys of a pod that is gone are forgotten', async () => {
  await withManager({}, async (world) => {
    world.read()
    await world.issue(await world.asked(1), 'QUJD')
    const [pod] = world.pods.splice(0)
    await world.clock.advance(3 * minuteMs)
    world.pods.push(pod as FrozenPod)
    assert.equal(world.read(), 'credential bundle is not issued yet')
  })
})

test('STO-03 a node without the feature requests no certificate', () => {
  const context = { config: { featureGates: {} } } as unknown as KubeletContext
  assert.throws(() => startPodCertificates(context, () => [], new AbortController().signal), /needs feature gate PodCertificateRequest$/)
})
