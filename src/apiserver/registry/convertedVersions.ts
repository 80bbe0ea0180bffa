/**
 * Field ownership across versions that a webhook converts (L3). The tracking of managed fields is pure and cannot wait: when it needs an object that
 * is not converted yet, it stops, the webhook converts the object, and the tracking starts again.
 * Upstream: the versionConverter of apimachinery/pkg/util/managedfields/internal over apiextensions-apiserver's converters (v1.36).
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import type { KubeObject } from '#api/machinery/meta'
import type { OtherVersions } from '#api/managedFields/versions'
import type { Schema } from '#api/schema/schema'
import type { DeepReadonly } from '#base/frozen'

export interface ForeignConversion {
  /** By apiVersion, the versions that are served. */
  readonly schemas: ReadonlyMap<string, Schema>
  convert(object: DeepReadonly<KubeObject>, apiVersion: string): Promise<KubeObject>
}

/** Thrown to stop the tracking; caught in this file. */
class NotConverted {
  readonly object: DeepReadonly<KubeObject>
  readonly apiVersion: string
  constructor(object: DeepReadonly<KubeObject>, apiVersion: string) {
    this.object = object
    this.apiVersion = apiVersion
  }
}

/**
 * @param work pure, since it may run several times; its own errors are rethrown
 * @throws Status of a conversion that failed
 */
export async function withConvertedVersions<T>({ schemas, convert }: ForeignConversion, own: string, work: (versions: OtherVersions) => T): Promise<T> {
  // Keyed by content, because each run makes new objects.
  const known = new Map<string, KubeObject>()
  const keyOf = (object: DeepReadonly<KubeObject>, apiVersion: string) => `${apiVersion} ${stringifyExactly(object)}`
  const inVersion = (object: DeepReadonly<KubeObject>, apiVersion: string): KubeObject => {
    if (object.apiVersion === apiVersion) return object as KubeObject
    const found = known.get(keyOf(object, apiVersion))
    if (!found) throw new NotConverted(object, apiVersion)
    return found
  }
  const versions: OtherVersions = (apiVersion) => {
    const schema = schemas.get(apiVersion)
    return schema && { schema, show: (object) => inVersion(object, apiVersion), back: (object) => inVersion(object, own) }
  }
  for (;;) {
    try {
      return work(versions)
    } catch (missing) {
      if (!(missing instanceof NotConverted)) throw missing
      known.set(keyOf(missing.object, missing.apiVersion), await convert(missing.object, missing.apiVersion))
    }
  }
}
