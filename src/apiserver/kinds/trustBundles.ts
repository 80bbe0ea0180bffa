/**
 * Reads the certificates of ClusterTrustBundles (L3), which the strategy, being pure, cannot: each must be one of an authority, and be there once.
 * Upstream: validateTrustBundle of pkg/apis/certificates/validation (v1.36).
 */
import type { ClusterTrustBundle } from '#api/gen/types/certificates.v1beta1'
import { type PemBlock, parsePem } from '#api/kinds/certificates/pem'
import { certificateBlockType } from '#api/kinds/certificates/pkcs10'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { turn } from '../core/fairLoop.ts'
import type { KindStorage } from '../registry/kindStorage.ts'
import type { CheckedWrite } from '../registry/storedResource.ts'
import { readCertificate } from './readCertificate.ts'

export const trustBundleStorage: KindStorage = { hooks: { checkRights: checkBundle } }

const path = FieldPath.of('spec', 'trustBundle')
const fault = (detail: string): FieldError => fieldError.invalid(path, '<value omitted>', detail)
/** Certificates that are read before other requests get a turn. */
const atOnce = 100

async function checkBundle({ object, old }: CheckedWrite): Promise<FieldError[]> {
  const { trustBundle = '' } = (object as Frozen<ClusterTrustBundle>).spec ?? {}
  // A bundle that was accepted stays, however certificates are read later.
  if (old && (old as Frozen<ClusterTrustBundle>).spec?.trustBundle === trustBundle) return []
  const blocks = parsePem(trustBundle)
  const errors: FieldError[] = []
  const places = new Map<string, number[]>()
  for (const [i, block] of blocks.entries()) {
    if (i % atOnce === atOnce - 1) await turn()
    const wrong = blockFault(block)
    if (wrong !== undefined) errors.push(fault(`entry ${i} ${wrong}`))
    const key = Buffer.from(block.bytes).toString('latin1')
    places.set(key, [...(places.get(key) ?? []), i])
  }
  if (errors.length > 0) return errors
  if (blocks.length === 0) return [fault('at least one trust anchor must be provided')]
  return [...places.values()].flatMap((indices) => (indices.length > 1 ? [fault(`duplicate trust anchor (indices [${indices.join(' ')}])`)] : []))
}

function blockFault({ type, hasHeaders, bytes }: PemBlock): string | undefined {
  if (type !== certificateBlockType) return `has bad block type: ${type}`
  if (hasHeaders) return 'has PEM block headers'
  const certificate = readCertificate(bytes)
  if (!certificate) return 'does not parse as X.509'
  return certificate.ca ? undefined : 'does not have the CA bit set'
}
