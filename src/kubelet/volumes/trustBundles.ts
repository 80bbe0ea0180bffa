/**
 * The certificates of ClusterTrustBundles as one file (L3): one bundle by its name, or all bundles of a signer that a label selector matches.
 * Each certificate is written once. Upstream: kubelet/clustertrustbundle (v1.36).
 */
import type { ClusterTrustBundle } from '#api/gen/types/certificates.v1beta1'
import type { ClusterTrustBundleProjection } from '#api/gen/types/core.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { clusterScoped } from '#client/builtIn'
import type { KubeletContext } from '../core/context.ts'
import { gateEnabled } from '../core/resourceConfig.ts'

const gate = 'ClusterTrustBundleProjection'
/** Beta: not among the resources that every server has. */
const clusterTrustBundles = clusterScoped<ClusterTrustBundle>('certificates.k8s.io', 'v1beta1', 'clustertrustbundles', 'ClusterTrustBundle')
const maxSelectorLength = 100 * 1024
const pemBlock = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g

/** The certificates of all bundles without duplicates, in an order that is unspecified but stable. */
export function trustAnchors(bundles: readonly string[]): string {
  const found = new Set(bundles.flatMap((bundle) => [...bundle.matchAll(pemBlock)].map(([, body = '']) => body.replaceAll(/\s/g, ''))))
  const wrapped = (body: string) => (body.match(/.{1,64}/g) ?? []).join('\n')
  return [...found]
    .sort()
    .map((body) => `-----BEGIN CERTIFICATE-----\n${wrapped(body)}\n-----END CERTIFICATE-----\n`)
    .join('')
}

/** @throws Error with upstream's text when nothing matches, unless the source is optional. */
export async function projectedTrustAnchors(context: KubeletContext, source: Frozen<ClusterTrustBundleProjection>): Promise<string> {
  if (!gateEnabled(context.config, gate)) throw new Error(`ClusterTrustBundle projection is off on this node: its kubelet needs feature gate ${gate}`)
  const bundles = source.name ? await bundleNamed(context, source.name, source.optional) : await bundlesOf(context, source)
  return trustAnchors(bundles.map(({ spec }) => spec.trustBundle))
}

async function bundleNamed({ client }: KubeletContext, name: string, optional: boolean | undefined): Promise<Frozen<ClusterTrustBundle>[]> {
  try {
    return [await client.of(clusterTrustBundles).get({ name })]
  } catch (error) {
    if (optional && isStatus(error, 'NotFound')) return []
    throw new Error(`while getting ClusterTrustBundle: ${messageOf(error)}`, { cause: error })
  }
}

async function bundlesOf({ client }: KubeletContext, source: Frozen<ClusterTrustBundleProjection>): Promise<Frozen<ClusterTrustBundle>[]> {
  const { signerName = '', labelSelector, optional } = source
  // No selector selects nothing, an empty one everything.
  const labels = selectorOf(labelSelector).toString()
  if (labels.length > maxSelectorLength) throw new Error(`label selector length (${labels.length}) is larger than ${maxSelectorLength}`)
  const selection = { fieldSelector: `spec.signerName=${signerName}`, ...(labels === '' ? {} : { labelSelector: labels }) }
  const found = labelSelector ? [...(await client.of(clusterTrustBundles).list(selection)).items] : []
  if (found.length === 0 && !optional) throw new Error('combination of signerName and labelSelector matched zero ClusterTrustBundles')
  return found
}
