/**
 * Converts objects by a definition's webhook (L3), many in one ConversionReview, and checks the answer: of metadata, the webhook may change only
 * labels and annotations.
 * Upstream: apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
 */
import type { WebhookClientConfig } from '#api/gen/types/apiextensions.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { validateLabels } from '#api/machinery/labelSelector'
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { validateAnnotations } from '#api/machinery/objectMeta'
import { isObject } from '#api/machinery/objects'
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { deepCopy } from '#base/frozen'
import { type Random, randomUid } from '#base/random'
import type { Place } from '../aggregation/serviceResolver.ts'
import type { Reach } from '../backends/reach.ts'
import { postJson } from '../webhooks/webhookClient.ts'
import { webhookTarget } from '../webhooks/webhookTarget.ts'
import type { WebhookConversion } from './converter.ts'
import type { Definition } from './definitions.ts'

export interface WebhookConversionDeps {
  /** The address of a service's endpoint. @throws StatusError if there is none */
  resolve(namespace: string, name: string, port: number): Place
  readonly random: Random
  readonly clock: Clock
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
}

const timeoutMs = 30_000
const reviewVersions: ReadonlySet<string> = new Set(['v1', 'v1beta1'])

export function createWebhookConversion(deps: WebhookConversionDeps): (definition: Definition) => WebhookConversion | undefined {
  return ({ spec }) => {
    const webhook = spec.conversion?.strategy === 'Webhook' ? spec.conversion.webhook : undefined
    const config = webhook?.clientConfig
    if (!webhook || !config) return undefined
    const version = webhook.conversionReviewVersions.find((one) => reviewVersions.has(one))
    return (objects, apiVersion, cancellation) => convert(deps, { config, version }, objects, apiVersion, cancellation?.signal)
  }
}

interface Webhook {
  readonly config: Frozen<WebhookClientConfig>
  /** The review's version; undefined when the webhook supports none of ours. */
  readonly version: string | undefined
}

async function convert(
  deps: WebhookConversionDeps,
  webhook: Webhook,
  objects: readonly Frozen<KubeObject>[],
  apiVersion: string,
  signal: AbortSignal | undefined,
) {
  const [first] = objects
  if (!first) return []
  const who = `conversion webhook for ${first.apiVersion}, Kind=${first.kind}`
  const converted = await ask(deps, webhook, objects, apiVersion, signal).catch((error: Error) => {
    throw failure(`${who} failed: ${error.message}`, error)
  })
  if (converted.length !== objects.length) throw failure(`${who} returned ${converted.length} objects, expected ${objects.length}`)
  return converted.map((object, index) => checked(objects[index] as Frozen<KubeObject>, object, apiVersion, `${who} returned invalid`, index))
}

function failure(message: string, cause?: unknown): StatusError {
  return new StatusError('', message, cause === undefined ? {} : { cause })
}

interface ConversionReview {
  readonly apiVersion?: string
  readonly kind?: string
  readonly response?: {
    readonly uid?: string
    readonly convertedObjects?: unknown[]
    readonly result?: { readonly status?: string; readonly message?: string }
  }
}

async function ask(
  { resolve, reach, random, clock }: WebhookConversionDeps,
  { config, version }: Webhook,
  objects: readonly Frozen<KubeObject>[],
  desiredAPIVersion: string,
  signal: AbortSignal | undefined,
): Promise<readonly unknown[]> {
  if (version === undefined) throw new Error('no supported conversion review versions')
  const apiVersion = `apiextensions.k8s.io/${version}`
  const uid = randomUid(random)
  const review = { kind: 'ConversionReview', apiVersion, request: { uid, desiredAPIVersion, objects } }
  const answer = (await postJson(webhookTarget(config, resolve, reach), review, { clock, timeoutMs, signal })) as ConversionReview | null | undefined
  if (typeof answer !== 'object' || answer === null) throw new Error('no response provided')
  const { response } = answer
  // Upstream never checked the uid in the older version of the review.
  if (version === 'v1') {
    if (answer.apiVersion !== apiVersion || answer.kind !== 'ConversionReview') {
      const { group, version: got } = parseGroupVersion(answer.apiVersion ?? '')
      throw new Error(`expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got ${group}/${got}, Kind=${answer.kind ?? ''}`)
    }
    if (response && response.uid !== uid) throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response.uid ?? '')}`)
  }
  if (!response) throw new Error('no response provided')
  const { result, convertedObjects } = response
  if (result?.status !== 'Success') throw new Error(result?.message || `response.result.status was '${result?.status ?? ''}', not 'Success'`)
  return convertedObjects ?? []
}

/** The converted object with the original's metadata. `invalid` begins every error text. */
function checked(original: Frozen<KubeObject>, value: unknown, apiVersion: string, invalid: string, index: number): KubeObject {
  const at = `${invalid} converted object at index ${index}`
  if (!isObject(value)) throw failure(`${at}: invalid type`)
  const converted = value as unknown as KubeObject
  if (converted.apiVersion !== apiVersion) throw failure(`${at}: invalid groupVersion (expected ${apiVersion}, received ${converted.apiVersion ?? ''})`)
  if (converted.kind !== original.kind) throw failure(`${at}: invalid kind (expected ${original.kind}, received ${converted.kind ?? ''})`)
  for (const [field, name] of [
    ['name', 'name'],
    ['namespace', 'namespace'],
    ['uid', 'UID'],
  ] as const) {
    const [before, after] = [original.metadata[field] ?? '', converted.metadata?.[field] ?? '']
    if (before !== after) throw failure(`${at}: must have the same ${name}: ${before} != ${after}`)
  }
  converted.metadata = restoredMetadata(original, converted, `${invalid} metadata in object at index ${index}`)
  return converted
}

function restoredMetadata(original: Frozen<KubeObject>, converted: KubeObject, invalid: string): KubeObject['metadata'] {
  if (!isObject(converted.metadata)) throw failure(`${invalid}: missing metadata in converted object`)
  const metadata = deepCopy<KubeObject['metadata']>(original.metadata)
  for (const field of ['labels', 'annotations'] as const) {
    const value: unknown = converted.metadata[field]
    if (value === undefined || value === null) {
      delete metadata[field]
      continue
    }
    if (!isObject(value)) throw failure(`${invalid}: invalid metadata.${field} of type ${typeof value} in converted object`)
    for (const [key, text] of Object.entries(value)) {
      if (typeof text !== 'string') throw failure(`${invalid}: metadata.${field}[${key}] must be a string, but is ${typeof text} in converted object`)
    }
    const map = value as Record<string, string>
    const faults =
      field === 'labels' ? validateLabels(map, FieldPath.of('metadata', 'labels')) : validateAnnotations(map, FieldPath.of('metadata', 'annotation'))
    if (faults.length > 0) throw failure(`${invalid}: ${faults.map(({ field: path, body }) => `${path}: ${body}`).join(', ')}`)
    metadata[field] = map
  }
  return metadata
}
