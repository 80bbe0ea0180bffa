/** The decoding rules of a served resource (L3). Upstream: the serializers and the defaulter of handlers' RequestScope. */
import type { KubeObject } from '#api/machinery/meta'
import type { ExpectedKind } from '../core/body.ts'
import type { ServedResource } from './storedResource.ts'

/** The kind that a body must have for the served resource. */
export function expectedKind(served: ServedResource): ExpectedKind {
  const { group, version, kind, schema, stored } = served
  const { strategy } = stored
  return {
    group,
    version,
    kind,
    schema,
    structural: served.custom !== undefined,
    defaults: strategy.defaults ? (object: KubeObject) => strategy.defaults?.(object, version) : undefined,
  }
}
