/** Warnings about sizes of parts of bytes, which are allowed and make no sense (L1). Upstream: pkg/api/pod and pkg/api/persistentvolumeclaim (v1.36). */
import type { FieldPath } from '#api/machinery/fieldPath'
import { canonicalQuantity, isQuantity, quantityMilliValue } from '#api/machinery/quantity'

/** Plain ones, as nearly all are. */
const wholeBytes = /^\d+(?:[KMGTPE]i|[kMGTPE])?$/

/** @param names of the resources that are sizes */
export function fractionWarnings(amounts: Readonly<Record<string, string>> | undefined, names: readonly string[], path: FieldPath): string[] {
  return names.flatMap((name) => {
    const amount = amounts?.[name]
    if (amount === undefined || wholeBytes.test(amount) || !isQuantity(amount) || quantityMilliValue(amount) % 1000 === 0) return []
    return [`${path.key(name)}: fractional byte value ${JSON.stringify(canonicalQuantity(amount))} is invalid, must be an integer`]
  })
}
