/**
 * The certificates of ClusterTrustBundles as one file (L3): one bundle by its name, or all bundles of a signer that a label selector matches.
 * Each certificate is written once. Upstream: kubelet/clustertrustbundle (v1.36).
 */
import type { ClusterTrustBundle } from '#api/gen/types/certificates.v1beta1'
import type { ClusterTrustBundleProjection } from '#api/gen/types/core.v1'
import { parsePem } from '#api/kinds/certificates/pem'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { clusterTrustBundles } from '#client/optional'
import type { KubeletContext } from '../core/context.ts'
import { gateEnabled } from '../core/resourceConfig.ts'

const gate = 'ClusterTrustBundleProjection'
const maxSelectorLength = 100 * 1024

/** The PEM of one certificate, in lines of 64 characters. */
export function certificatePem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.map((line) => `${line}\n`).join('')}-----END CERTIFICATE-----\n`
}

/** The certificates of all bundles without duplicates, in an order that is unspecified but stable. */
export function trustAnchors(bundles: readonly string[]): string {
  const found = new Set(bundles.flatMap((bundle) => parsePem(bundle).map(({ bytes }) => certificatePem(bytes))))
  return [...found].sort().join('')
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
