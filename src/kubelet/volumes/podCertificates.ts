/**
 * The certificates of pods' projected volumes (L3): requests one for each source, keeps the key in memory, and requests the next one when the signer says
 * so. A kubelet that restarts forgets them all and requests new ones. Loaded by the first pod that needs a certificate.
 * Upstream: kubelet/podcertificate/podcertificatemanager.go (v1.36).
 */
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { PodCertificateProjection } from '#api/gen/types/core.v1'
import { parsePem } from '#api/kinds/certificates/pem'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { parseTime } from '#base/time'
import { createWakeUp } from '#base/wakeUp'
import { nodes, serviceAccounts } from '#client/builtIn'
import { podCertificateRequests } from '#client/optional'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { Followed } from '../core/listWatch.ts'
import { podReference } from '../core/podReference.ts'
import { gateEnabled } from '../core/resourceConfig.ts'
import type { FileProjection } from './atomicWriter.ts'
import { newKey } from './podCertificateKeys.ts'
import { certificatePem } from './trustBundles.ts'

export interface CredentialBundle {
  /** PEM of the private key. */
  readonly key: string
  /** PEM of the certificates, the pod's own first. */
  readonly chain: string
}

/** Where a pod's certificate is asked for: a source of a projected volume. */
export interface CertificatePlace {
  readonly volumeName: string
  /** Among the sources of the volume. */
  readonly sourceIndex: number
}

export interface PodCertificates {
  /** The files of the source, by path. @throws Error while there is no certificate, and when the signer has refused one */
  files(pod: FrozenPod, place: CertificatePlace, owner: Omit<FileProjection, 'data'>): Map<string, FileProjection>
  /** Resolves when the manager has stopped. */
  readonly done: Promise<void>
}

type Source = Frozen<PodCertificateProjection>
type Request = Frozen<PodCertificateRequest>

interface Pending {
  readonly key: string
  readonly name: string
  /** From then on a request that the watch does not show was deleted. */
  readonly abandonAtMs: number
}

interface Credentials extends CredentialBundle {
  readonly beginRefreshAtMs: number
  readonly notAfterMs: number
  toldOverdue?: boolean
  toldExpired?: boolean
}

/** What is known of one source: a request, credentials, or both while they are refreshed. A refusal is final. */
interface Projection extends CertificatePlace {
  readonly podUid: string
  pending?: Pending | undefined
  credentials?: Credentials | undefined
  refused?: { readonly type: 'denied' | 'failed'; readonly why: string } | undefined
}

const minuteMs = 60_000
/** After this time, and jitter, a request that the watch does not show is taken for deleted. */
const assumeDeletedMs = 10 * minuteMs
const overdueMs = 10 * minuteMs
const jitterMs = 5 * minuteMs
const firstRetryMs = 5
const longestRetryMs = 1_000_000

const gate = 'PodCertificateRequest'

/** Runs until the signal aborts. @param pods the pods of the node @throws Error on a node without the feature or without an API server */
export function startPodCertificates(context: KubeletContext, pods: () => readonly FrozenPod[], signal: AbortSignal): PodCertificates {
  if (!gateEnabled(context.config, gate)) throw new Error(`pod certificates are off on this node: its kubelet needs feature gate ${gate}`)
  if (context.isStandalone) throw new Error('pod certificates need an API server')
  return new Manager(context, pods, signal)
}

class Manager implements PodCertificates {
  readonly done: Promise<void>
  readonly #context: KubeletContext
  readonly #pods: () => readonly FrozenPod[]
  readonly #signal: AbortSignal
  readonly #projections = new Map<string, Projection>()
  /** Sources to look at. */
  readonly #due = new Set<string>()
  readonly #wakeUp = createWakeUp()
  /** How often a source failed in a row. */
  readonly #failures = new Map<string, number>()
  /** Sources that wait for their next try. */
  readonly #waiting = new Set<string>()
  readonly #requests: Followed<PodCertificateRequest>
  readonly #states: ReturnType<typeof stateGauge>

  constructor(context: KubeletContext, pods: () => readonly FrozenPod[], signal: AbortSignal) {
    this.#context = context
    this.#pods = pods
    this.#signal = signal
    this.#states = stateGauge(context)
    const selection = { fieldSelector: `spec.nodeName=${context.config.nodeName}` }
    this.#requests = context.sources.objects(podCertificateRequests, selection, signal, ({ spec }) => this.#enqueue(spec.podUID))
    this.done = Promise.all([this.#requests.done, this.#refresh(), this.#work()]).then(() => undefined)
  }

  files(pod: FrozenPod, place: CertificatePlace, owner: Omit<FileProjection, 'data'>): Map<string, FileProjection> {
    const { key, chain } = this.#bundle(pod, place)
    const { credentialBundlePath, keyPath, certificateChainPath } = sourceOf(pod, place) ?? {}
    const files = [
      [credentialBundlePath, key + chain],
      [keyPath, key],
      [certificateChainPath, chain],
    ] as const
    return new Map(files.flatMap(([path, text]) => (path ? [[path, { data: Buffer.from(text), ...owner }] as const] : [])))
  }

  #bundle({ metadata: { uid: podUid = '' } }: FrozenPod, { volumeName, sourceIndex }: CertificatePlace): CredentialBundle {
    const id = JSON.stringify([podUid, volumeName, sourceIndex])
    const { credentials, refused } = this.#projections.get(id) ?? {}
    if (refused) throw new Error(`PodCertificateRequest was permanently ${refused.type}: ${refused.why}`)
    if (credentials) return credentials
    if (!this.#projections.has(id)) {
      this.#projections.set(id, { podUid, volumeName, sourceIndex })
      this.#add(id)
    }
    throw new Error('credential bundle is not issued yet')
  }

  #enqueue(podUid?: string): void {
    for (const [id, projection] of this.#projections) if (podUid === undefined || projection.podUid === podUid) this.#add(id)
  }

  #add(id: string): void {
    this.#due.add(id)
    this.#wakeUp.ring()
  }

  async #work(): Promise<void> {
    await this.#requests.synced
    while (!this.#signal.aborted) {
      const [id] = this.#due
      if (id === undefined) {
        await this.#wakeUp.wait(this.#signal)
        continue
      }
      this.#due.delete(id)
      const projection = this.#projections.get(id)
      try {
        if (projection) await this.#advance(id, projection)
        this.#failures.delete(id)
      } catch (error) {
        this.#context.log.v(2).info('Failed to handle a podCertificate projected volume source', { source: id, error: messageOf(error) })
        this.#retry(id)
      }
      this.#states.show(this.#projections.values(), this.#pods())
    }
  }

  /** The wait grows with each failure, as that of upstream's queue. */
  #retry(id: string): void {
    const failures = this.#failures.get(id) ?? 0
    this.#failures.set(id, failures + 1)
    const waitMs = Math.min(firstRetryMs * 2 ** failures, longestRetryMs)
    // Refreshes and changes of requests fail, too: one wait at a time.
    if (this.#waiting.has(id)) return
    this.#waiting.add(id)
    const again = () => {
      this.#waiting.delete(id)
      this.#add(id)
    }
    this.#context.clock.sleep(waitMs, this.#signal).then(again, () => {})
  }

  /** Looks at all sources from time to time: for refreshes, and for pods that are gone. */
  async #refresh(): Promise<void> {
    const { clock, random } = this.#context
    while (!this.#signal.aborted) {
      this.#enqueue()
      await clock.sleep(minuteMs + random.int(minuteMs), this.#signal).catch(() => {})
    }
  }

  async #advance(id: string, projection: Projection): Promise<void> {
    const pod = this.#pods().find(({ metadata }) => metadata.uid === projection.podUid)
    const source = pod && sourceOf(pod, projection)
    if (!source) {
      this.#projections.delete(id)
      return
    }
    const { pending, credentials, refused } = projection
    if (refused) return
    if (pending) this.#decide(projection, pending, pod)
    else if (!credentials || this.#context.clock.now() >= credentials.beginRefreshAtMs) {
      if (credentials) this.#tellOfAge(pod, credentials)
      projection.pending = await this.#request(pod, source)
    }
  }

  async #request(pod: FrozenPod, source: Source): Promise<Pending> {
    const { client, clock, config } = this.#context
    const options = { signal: this.#signal }
    const { namespace = '', name = '', uid = '' } = pod.metadata
    const { serviceAccountName = '' } = pod.spec
    const [account, node, { key, request: stubPKCS10Request }] = await Promise.all([
      client.of(serviceAccounts).get({ namespace, name: serviceAccountName }, options),
      client.of(nodes).get({ name: config.nodeName }, options),
      newKey(source.keyType),
    ])
    const { signerName, maxExpirationSeconds, userAnnotations } = source
    const body = {
      metadata: { namespace, generateName: 'req-', ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }] },
      spec: {
        signerName,
        podName: name,
        podUID: uid,
        serviceAccountName,
        serviceAccountUID: account.metadata.uid ?? '',
        nodeName: config.nodeName,
        nodeUID: node.metadata.uid ?? '',
        ...(maxExpirationSeconds === undefined ? {} : { maxExpirationSeconds }),
        stubPKCS10Request,
        ...(userAnnotations ? { unverifiedUserAnnotations: { ...userAnnotations } } : {}),
      },
    }
    const made = await client.of(podCertificateRequests).create(body, options)
    const createdMs = parseTime(made.metadata.creationTimestamp ?? '') ?? clock.now()
    return { key, name: made.metadata.name ?? '', abandonAtMs: createdMs + assumeDeletedMs + this.#jitter() }
  }

  #decide(projection: Projection, { key, name, abandonAtMs }: Pending, pod: FrozenPod): void {
    const shown = `${pod.metadata.namespace}/${name}`
    const found = this.#requests.get(shown)
    if (!found) {
      const isAbandoned = this.#context.clock.now() > abandonAtMs
      if (isAbandoned) projection.pending = undefined
      throw new Error(`PodCertificateRequest ${JSON.stringify(shown)} ${isAbandoned ? 'appears to have been deleted' : 'is not there yet'}`)
    }
    const decision = found.status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed' || type === 'Issued')
    if (!decision) {
      if (projection.credentials) this.#tellOfAge(pod, projection.credentials)
      return
    }
    projection.pending = undefined
    if (decision.type === 'Issued') {
      projection.credentials = credentialsOf(key, found, this.#jitter())
      return
    }
    const { type, reason, message } = decision
    const [because, says] = [`reason=${JSON.stringify(reason)}`, `message=${JSON.stringify(message)}`]
    const isDenied = type === 'Denied'
    projection.refused = { type: isDenied ? 'denied' : 'failed', why: `${because} ${says}` }
    this.#warn(pod, type, `PodCertificateRequest ${shown} ${isDenied ? 'was denied' : 'failed'}, ${because}, ${says}`)
  }

  #tellOfAge(pod: FrozenPod, credentials: Credentials): void {
    const nowMs = this.#context.clock.now()
    if (nowMs > credentials.beginRefreshAtMs + overdueMs && !credentials.toldOverdue) {
      this.#warn(pod, 'CertificateOverdueForRefresh', 'PodCertificate refresh overdue')
      credentials.toldOverdue = true
    }
    if (nowMs > credentials.notAfterMs && !credentials.toldExpired) {
      this.#warn(pod, 'CertificateExpired', 'PodCertificate expired')
      credentials.toldExpired = true
    }
  }

  #warn(pod: FrozenPod, reason: string, message: string): void {
    this.#context.recorder.event(podReference(pod), 'Warning', reason, message)
  }

  #jitter(): number {
    return this.#context.random.int(jitterMs)
  }
}

function sourceOf(pod: FrozenPod, { volumeName, sourceIndex }: CertificatePlace): Source | undefined {
  return pod.spec.volumes?.find(({ name }) => name === volumeName)?.projected?.sources?.[sourceIndex]?.podCertificate
}

function credentialsOf(key: string, { status }: Request, jitter: number): Credentials {
  const blocks = parsePem(status.certificateChain ?? '')
  return {
    key,
    // Headers of blocks, and what is between them, are left out.
    chain: blocks.map(({ bytes }) => certificatePem(bytes)).join(''),
    beginRefreshAtMs: (parseTime(status.beginRefreshAt ?? '') ?? 0) + jitter,
    notAfterMs: parseTime(status.notAfter ?? '') ?? 0,
  }
}

/** Counts the sources by signer and state. */
function stateGauge({ metrics, clock }: Pick<KubeletContext, 'metrics' | 'clock'>) {
  const gauge = metrics.gauge({
    name: 'kubelet_podcertificate_states',
    help: 'Pod certificate projected volume sources, by signer and state.',
    labels: ['signer_name', 'state'],
  })
  let shown = new Map<string, { signer_name: string; state: string }>()
  const stateOf = ({ refused, credentials }: Projection): string => {
    if (refused || !credentials) return refused?.type ?? 'not_yet_issued'
    if (clock.now() > credentials.notAfterMs) return 'expired'
    return clock.now() > credentials.beginRefreshAtMs + overdueMs ? 'overdue_for_refresh' : 'fresh'
  }
  return {
    show(projections: Iterable<Projection>, pods: readonly FrozenPod[]): void {
      const byUid = new Map(pods.map((pod) => [pod.metadata.uid, pod]))
      const counts = new Map<string, number>()
      const labels: typeof shown = new Map()
      for (const projection of projections) {
        const pod = byUid.get(projection.podUid)
        const source = pod && sourceOf(pod, projection)
        if (!source) continue
        const set = { signer_name: source.signerName, state: stateOf(projection) }
        const id = JSON.stringify(set)
        labels.set(id, set)
        counts.set(id, (counts.get(id) ?? 0) + 1)
      }
      for (const [id, set] of shown) if (!labels.has(id)) gauge.remove(set)
      for (const [id, set] of labels) gauge.set(counts.get(id) ?? 0, set)
      shown = labels
    },
  }
}
