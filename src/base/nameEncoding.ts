/** Writes the distinguished names of certificates (L0, pure). Upstream: Go's crypto/x509/pkix Name.ToRDNSequence. */
import { derTag } from './der.ts'
import { encodeDer, encodeIdentifier } from './derEncoding.ts'
import { type DistinguishedName, isPrintable, nameType, valuesOf } from './distinguishedName.ts'

/** The attributes that a signed certificate keeps of a request, in their order. */
const keptTypes = [
  nameType.country,
  nameType.organization,
  nameType.organizationalUnit,
  nameType.locality,
  nameType.province,
  nameType.streetAddress,
  nameType.postalCode,
  nameType.commonName,
  nameType.serialNumber,
]
const singleTypes: readonly string[] = [nameType.commonName, nameType.serialNumber]

/**
 * DER of the name that a certificate gets for a request's: attributes of the kinds above and of no other. A signer must not certify an attribute that no
 * check has read, such as a user's UID.
 */
export function encodeKeptName(name: DistinguishedName): Uint8Array {
  const sets = keptTypes.flatMap((type) => {
    const all = valuesOf(name, type)
    const values = singleTypes.includes(type) ? all.slice(-1).filter((value) => value !== '') : all
    const pairs = values.map((value) => encodeDer(derTag.sequence, encodeIdentifier(type), encodeText(value)))
    return pairs.length === 0 ? [] : [encodeDer(derTag.set, ...pairs.sort(compareBytes))]
  })
  return encodeDer(derTag.sequence, ...sets)
}

function encodeText(value: string): Uint8Array {
  const bytes = new TextEncoder().encode(value)
  return encodeDer(bytes.every(isPrintable) ? derTag.printableString : derTag.utf8String, bytes)
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, i) => byte !== b[i])
  return at < 0 ? a.length - b.length : (a[at] ?? 0) - (b[at] ?? -1)
}
