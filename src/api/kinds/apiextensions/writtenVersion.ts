/**
 * CustomResourceDefinition as apiextensions.k8s.io/v1beta1 (L1): the version that upstream writes to etcd, since it is shorter. What all versions of a
 * definition have in common stands once in its spec there.
 * Upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go, v1beta1/defaults.go (v1.36).
 */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { semanticEqual } from '#api/machinery/equality'

type Members = Record<string, unknown>

/** Fields of a version, and their names where they stand in the spec. */
const shared = {
  subresources: 'subresources',
  schema: 'validation',
  additionalPrinterColumns: 'additionalPrinterColumns',
  selectableFields: 'selectableFields',
}

/** Changes the object. */
export function toV1beta1(obj: CustomResourceDefinition): CustomResourceDefinition {
  const spec = obj.spec as unknown as Members
  const versions = (spec.versions ?? []) as Members[]
  spec.preserveUnknownFields ??= false
  renameColumns(versions, 'jsonPath', 'JSONPath')
  const [first] = versions
  if (first) {
    spec.version = first.name
    for (const [field, ofSpec] of Object.entries(shared)) {
      if (!versions.every((version) => semanticEqual(version[field], first[field]))) continue
      if (first[field] !== undefined) spec[ofSpec] = first[field]
      for (const version of versions) delete version[field]
    }
  }
  const conversion = spec.conversion as Members | undefined
  const webhook = conversion?.webhook as Members | undefined
  if (conversion && webhook) {
    const { clientConfig, conversionReviewVersions } = webhook
    if (clientConfig !== undefined) conversion.webhookClientConfig = clientConfig
    if (conversionReviewVersions !== undefined) conversion.conversionReviewVersions = conversionReviewVersions
    delete conversion.webhook
  }
  return obj
}

/** Changes the object. */
export function fromV1beta1(obj: CustomResourceDefinition): CustomResourceDefinition {
  const spec = obj.spec as unknown as Members
  spec.scope ||= 'Namespaced'
  spec.preserveUnknownFields ??= true
  if (spec.preserveUnknownFields === false) delete spec.preserveUnknownFields
  const versions = ((spec.versions as Members[] | undefined)?.length ? spec.versions : versionOf(spec.version)) as Members[]
  spec.versions = versions
  for (const [field, ofSpec] of Object.entries(shared)) {
    if (spec[ofSpec] !== undefined) for (const version of versions) version[field] = structuredClone(spec[ofSpec])
    delete spec[ofSpec]
  }
  delete spec.version
  renameColumns(versions, 'JSONPath', 'jsonPath')
  const conversion = (spec.conversion ?? { strategy: 'None' }) as Members
  spec.conversion = conversion
  const { webhookClientConfig: clientConfig, conversionReviewVersions } = conversion
  delete conversion.webhookClientConfig
  delete conversion.conversionReviewVersions
  if (clientConfig !== undefined || conversionReviewVersions !== undefined) {
    conversion.webhook = { ...(clientConfig === undefined ? {} : { clientConfig }), conversionReviewVersions: conversionReviewVersions ?? ['v1beta1'] }
  }
  return obj
}

function versionOf(name: unknown): Members[] {
  return name ? [{ name, served: true, storage: true }] : []
}

/** Keeps the order of fields. */
function renameColumns(versions: readonly Members[], from: string, to: string): void {
  for (const version of versions) {
    const columns = version.additionalPrinterColumns as Members[] | undefined
    if (!columns) continue
    version.additionalPrinterColumns = columns.map((column) =>
      Object.fromEntries(Object.entries(column).map(([name, value]) => [name === from ? to : name, value])),
    )
  }
}
