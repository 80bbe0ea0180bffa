/**
 * Records the credentials with which each image was pulled (L3), so that a pod without them cannot use an image of another pod's secret. The files
 * outlive the kubelet. Upstream: kubelet/images/pullmanager (v1.36), kinds ImagePullIntent and ImagePulledRecord.
 */
import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { bareMap, ownValue } from '#base/bareMap'
import { formatTime, parseTime } from '#base/time'
import type { RuntimeImage } from '#grpc/criTypes'
import { listIfExists, makeDirectory, writeFileAtomic } from '#host/files'
import type { VerificationPolicy } from '../core/config.ts'
import type { KubeletContext } from '../core/context.ts'
import { withoutTag } from '../core/imageReference.ts'
import { type Credentials, hashOf } from './keyring.ts'

interface SecretRecord {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly credentialHash: string
}

type AccountRecord = Omit<SecretRecord, 'credentialHash'>

/** The credentials that allow a pod to use an image on the node. */
export interface PullCredentials {
  readonly kubernetesSecrets?: readonly SecretRecord[]
  readonly kubernetesServiceAccounts?: readonly AccountRecord[]
  readonly nodePodsAccessible?: boolean
}

interface PulledRecord {
  readonly kind: 'ImagePulledRecord'
  readonly apiVersion: string
  readonly lastUpdatedTime: string
  readonly imageRef: string
  readonly credentialMapping?: Readonly<Record<string, PullCredentials>>
}

export interface PullRecords {
  /** Before a pull: should the kubelet die now, it knows afterwards that the image was not there before it. */
  intend(image: string): Promise<void>
  pulled(image: string, imageRef: string, used: Credentials | undefined): Promise<void>
  failed(image: string): Promise<void>
  /** Whether a pod needs credentials for an image that is present. */
  mustPull(image: string, imageRef: string, credentials: () => Promise<readonly Credentials[]>): Promise<boolean>
  /** Deletes the records of removed images. */
  prune(images: readonly RuntimeImage[], beforeMs: number): Promise<void>
}

const apiVersion = 'kubelet.config.k8s.io/v1beta1'
/** From here on a record no longer grows by other secrets with the same content. */
const maxSecrets = 100

/** For runtimes without a disk: every pod may use every image. */
const noRecords: PullRecords = {
  intend: async () => {},
  pulled: async () => {},
  failed: async () => {},
  mustPull: async () => false,
  prune: async () => {},
}

/** Whether the configured policy requires a check of an image's users. */
export function requiresVerification(image: string, byKubelet: boolean, policy: VerificationPolicy, allowlist: readonly string[]): boolean {
  if (policy === 'NeverVerify') return false
  if (policy === 'AlwaysVerify' || byKubelet) return true
  if (policy === 'NeverVerifyPreloadedImages') return false
  const name = withoutTag(image)
  return !allowlist.some((pattern) => (pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
}

function credentialsOf(used: Credentials | undefined): PullCredentials {
  const { secret, serviceAccount } = used?.source ?? {}
  if (used && secret) return { kubernetesSecrets: [{ ...secret, credentialHash: hashOf(used.auth) }] }
  return serviceAccount ? { kubernetesServiceAccounts: [serviceAccount] } : { nodePodsAccessible: true }
}

/** Merges both; access for all pods makes lists of names unnecessary. */
export function mergeCredentials(before: PullCredentials | undefined, added: PullCredentials): PullCredentials {
  if (!before || added.nodePodsAccessible) return added
  if (before.nodePodsAccessible) return before
  const same = (a: AccountRecord, b: AccountRecord) => a.uid === b.uid && a.namespace === b.namespace && a.name === b.name
  const secrets = [
    ...(before.kubernetesSecrets ?? []).filter((old) => !(added.kubernetesSecrets ?? []).some((one) => same(old, one))),
    ...(added.kubernetesSecrets ?? []),
  ]
  const accounts = [
    ...(before.kubernetesServiceAccounts ?? []),
    ...(added.kubernetesServiceAccounts ?? []).filter((one) => !(before.kubernetesServiceAccounts ?? []).some((old) => same(old, one))),
  ]
  return { ...(secrets.length > 0 ? { kubernetesSecrets: secrets } : {}), ...(accounts.length > 0 ? { kubernetesServiceAccounts: accounts } : {}) }
}

/** The recorded credentials that fit the pod's; 'new': they do, but under a name or with a content that is not recorded yet. */
export function grants(recorded: PullCredentials | undefined, presented: readonly Credentials[]): 'yes' | 'no' | { readonly new: Credentials } {
  if (!recorded) return 'no'
  if (recorded.nodePodsAccessible) return 'yes'
  for (const credentials of presented) {
    const { secret, serviceAccount } = credentials.source ?? {}
    for (const known of secret ? (recorded.kubernetesSecrets ?? []) : []) {
      const sameContent = known.credentialHash !== '' && known.credentialHash === hashOf(credentials.auth)
      const sameName = known.uid === secret?.uid && known.namespace === secret.namespace && known.name === secret.name
      if (sameContent && sameName) return 'yes'
      if (sameContent || sameName) return { new: credentials }
    }
    const accounts = serviceAccount ? (recorded.kubernetesServiceAccounts ?? []) : []
    if (
      accounts.some(
        (known) =>
          JSON.stringify([known.uid, known.namespace, known.name]) === JSON.stringify([serviceAccount?.uid, serviceAccount?.namespace, serviceAccount?.name]),
      )
    )
      return 'yes'
  }
  return 'no'
}

/** Reads the records of an earlier kubelet: pulls that were running when it stopped count as pulled without any credentials. */
export async function openPullRecords(context: KubeletContext): Promise<PullRecords> {
  const { host, config, clock, log } = context
  if (!host) return noRecords
  const directory = host.path(`${config.rootDirectory}/image_manager`)
  const path = (kind: 'pulling' | 'pulled', key: string) => `${directory}/${kind}/sha256-${createHash('sha256').update(key).digest('hex')}`
  const intents = new Map<string, number>()
  const metrics = pullRecordMetrics(context, directory)
  for (const kind of ['pulling', 'pulled']) await makeDirectory(`${directory}/${kind}`, 0o700)

  const read = async <T>(file: string): Promise<T | undefined> => {
    try {
      return JSON.parse(await readFile(file, 'utf8')) as T
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') log.warn('A record of an image pull cannot be read, it is left out', { file, error: String(error) })
      return undefined
    }
  }
  const record = async (image: string, imageRef: string, added: PullCredentials | undefined): Promise<void> => {
    const before = await read<PulledRecord>(path('pulled', imageRef))
    const name = withoutTag(image)
    const credentialMapping = bareMap({ ...before?.credentialMapping })
    if (added) credentialMapping[name] = mergeCredentials(credentialMapping[name], added)
    if (before && JSON.stringify(before.credentialMapping ?? {}) === JSON.stringify(credentialMapping)) return
    const next: PulledRecord = { kind: 'ImagePulledRecord', apiVersion, lastUpdatedTime: formatTime(clock.now()), imageRef, credentialMapping }
    await writeFileAtomic(path('pulled', imageRef), JSON.stringify(next), 0o600)
    if (!before) await metrics.count('pulled')
  }
  const forgetIntent = async (image: string): Promise<void> => {
    const left = (intents.get(image) ?? 1) - 1
    if (left > 0) return void intents.set(image, left)
    intents.delete(image)
    await rm(path('pulling', image), { force: true })
    await metrics.count('pulling')
  }
  const records: PullRecords = {
    intend: async (image) => {
      intents.set(image, (intents.get(image) ?? 0) + 1)
      await writeFileAtomic(path('pulling', image), JSON.stringify({ kind: 'ImagePullIntent', apiVersion, image }), 0o600)
      await metrics.count('pulling')
    },
    pulled: async (image, imageRef, used) => {
      await record(image, imageRef, credentialsOf(used))
      await forgetIntent(image)
    },
    failed: forgetIntent,
    mustPull: async (image, imageRef, credentials) => {
      const known = await read<PulledRecord>(path('pulled', imageRef))
      const byKubelet = known !== undefined || intents.has(image) || (await read(path('pulling', image))) !== undefined
      if (!requiresVerification(image, byKubelet, config.imagePullCredentialsVerificationPolicy, config.preloadedImagesVerificationAllowlist)) {
        return metrics.checked('credentialPolicyAllowed')
      }
      const recorded = ownValue(known?.credentialMapping, withoutTag(image))
      if (recorded?.nodePodsAccessible) return metrics.checked('credentialRecordFound')
      const granted = grants(recorded, await credentials())
      if (typeof granted === 'object' && (recorded?.kubernetesSecrets?.length ?? 0) < maxSecrets) await record(image, imageRef, credentialsOf(granted.new))
      return metrics.checked(granted === 'no' ? 'mustAuthenticate' : 'credentialRecordFound')
    },
    prune: async (images, beforeMs) => {
      const present = new Set(images.map(({ id }) => id))
      for (const name of await listIfExists(`${directory}/pulled`)) {
        const known = await read<PulledRecord>(`${directory}/pulled/${name}`)
        if (known && !present.has(known.imageRef) && (parseTime(known.lastUpdatedTime) ?? 0) < beforeMs)
          await rm(`${directory}/pulled/${name}`, { force: true })
      }
      await metrics.count('pulled')
    },
  }
  await adoptIntents(context, `${directory}/pulling`, read, record)
  for (const kind of ['pulling', 'pulled'] as const) await metrics.count(kind)
  return records
}

type CheckResult = 'credentialPolicyAllowed' | 'credentialRecordFound' | 'mustAuthenticate'

function pullRecordMetrics({ metrics }: KubeletContext, directory: string) {
  const noted = {
    pulling: metrics.gauge({ name: 'kubelet_imagemanager_ondisk_pullintents', help: 'How many image pulls that have begun are noted on disk.' }),
    pulled: metrics.gauge({ name: 'kubelet_imagemanager_ondisk_pulledrecords', help: 'How many pulled images are noted on disk.' }),
  }
  const checks = metrics.counter({
    name: 'kubelet_imagemanager_image_mustpull_checks_total',
    help: 'How often it was checked whether a pod has to show credentials for an image that is there.',
    labels: ['result'],
  })
  return {
    count: async (kind: 'pulling' | 'pulled') => noted[kind].set((await listIfExists(`${directory}/${kind}`)).length),
    /** True: the pod must authenticate. */
    checked: (result: CheckResult): boolean => {
      checks.inc({ result })
      return result === 'mustAuthenticate'
    },
  }
}

async function adoptIntents(
  { runtime }: KubeletContext,
  directory: string,
  read: <T>(file: string) => Promise<T | undefined>,
  record: (image: string, imageRef: string, added: undefined) => Promise<void>,
): Promise<void> {
  const names = await listIfExists(directory)
  if (names.length === 0) return
  const images = await runtime.listImages().catch(() => [])
  for (const name of names) {
    const intent = await read<{ image?: string }>(`${directory}/${name}`)
    const image = images.find(({ repoTags, repoDigests }) => [...repoTags, ...repoDigests].includes(intent?.image ?? ''))
    if (!image || !intent?.image) continue
    await record(intent.image, image.id, undefined)
    await rm(`${directory}/${name}`, { force: true })
  }
}
