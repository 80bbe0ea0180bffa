/**
 * Asks a webhook whether a pod's images may run (L3); its answers are cached. Off by default.
 * Upstream: plugin/pkg/admission/imagepolicy.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { Random } from '#base/random'
import { createHttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import { insistently } from '../../webhooks/webhookRetry.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf, refuse } from '../attributes.ts'

export interface ImagePolicySettings {
  /** From the kubeconfig: its server is the full URL to post to. */
  readonly transport: Omit<HttpTransportOptions, 'clock'>
  readonly allowTtlMs: number
  readonly denyTtlMs: number
  readonly retryBackoffMs: number
  /** Whether pods are admitted while the webhook does not answer. */
  readonly defaultAllow: boolean
}

interface Status {
  readonly allowed: boolean
  readonly reason?: string | undefined
  readonly auditAnnotations?: Readonly<Record<string, string>> | undefined
}

const cacheSize = 1024
const timeoutMs = 30_000
const auditPrefix = 'imagepolicywebhook.image-policy.k8s.io/'

export function imagePolicyWebhook(deps: { readonly clock: Clock; readonly random: Random }, settings: ImagePolicySettings): AdmissionPlugin {
  const { clock } = deps
  const client = createHttpTransport({ ...settings.transport, clock })
  // The connection adds the URL's own path, which must not gain a slash.
  const path = new URL(settings.transport.server).pathname === '/' ? '/' : ''
  const answers = new LruCache<string, { readonly status: Status; readonly expiresMs: number }>(cacheSize)
  const ask = async (spec: unknown): Promise<Status> => {
    const body = { kind: 'ImageReview', apiVersion: 'imagepolicy.k8s.io/v1alpha1', metadata: {}, spec, status: { allowed: false } }
    using limit = deadlineScope({ clock, ms: timeoutMs })
    const { signal } = limit
    const answer = await insistently({ ...deps, firstDelayMs: settings.retryBackoffMs }, () => client.request({ method: 'POST', path, body }, signal), signal)
    return (answer.body as { readonly status?: Status }).status ?? { allowed: false }
  }
  const statusOf = async (spec: unknown): Promise<Status> => {
    const key = JSON.stringify(spec)
    const known = answers.get(key)
    if (known && known.expiresMs > clock.monotonicMs()) return known.status
    const status = await ask(spec)
    answers.set(key, { status, expiresMs: clock.monotonicMs() + (status.allowed ? settings.allowTtlMs : settings.denyTtlMs) })
    return status
  }
  return {
    name: 'ImagePolicyWebhook',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    async validate(attributes) {
      if (!isResource(attributes, '', 'pods') && !isSubresource(attributes, '', 'pods', 'ephemeralcontainers')) return
      let status: Status
      try {
        status = await statusOf(reviewOf(attributes))
      } catch (error) {
        if (!settings.defaultAllow) throw refuse(attributes, (error as Error).message)
        attributes.annotate?.(`${auditPrefix}failed-open`, 'true')
        return
      }
      for (const [key, value] of Object.entries(status.auditAnnotations ?? {})) attributes.annotate?.(`${auditPrefix}${key}`, value)
      if (status.allowed) return
      throw refuse(
        attributes,
        status.reason ? `image policy webhook backend denied one or more images: ${status.reason}` : 'one or more images rejected by webhook backend',
      )
    },
  }
}

/** The review: the images, and the annotations for the webhook. */
function reviewOf(attributes: AdmissionAttributes): unknown {
  const { metadata, spec } = objectOf<Pod>(attributes) as Frozen<Pod>
  const all = attributes.subresource === '' ? [...spec.containers, ...(spec.initContainers ?? [])] : (spec.ephemeralContainers ?? [])
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => key.includes('.image-policy.k8s.io/'))
  return {
    containers: all.map(({ image }) => ({ image })),
    ...(annotations.length > 0 ? { annotations: Object.fromEntries(annotations) } : {}),
    namespace: attributes.namespace,
  }
}
