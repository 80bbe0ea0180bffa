/**
 * A stored resource for admission (L3): its versions, and the conversion between them through the stored shape.
 * Upstream: the converter, defaulter and EquivalentResourceMapper of handlers' RequestScope.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { internalError } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { decodeExpected, decodeMade } from '../core/body.ts'
import type { Cancellation } from '../core/cancellation.ts'
import type { AdmissionForms } from '../core/objectReader.ts'
import { expectedKind } from './expectedKind.ts'
import type { ServedResource } from './storedResource.ts'

/** `versions`: all that serve one storage. */
export function formsOf(versions: readonly ServedResource[]): AdmissionForms {
  const byApiVersion = new Map(versions.map((one) => [one.apiVersion, one]))
  const served = (apiVersion: string): ServedResource => {
    const found = byApiVersion.get(apiVersion)
    if (!found) throw internalError(new Error(`unable to convert to ${apiVersion}: unknown version`))
    return found
  }
  return {
    all: versions.map((one) => ({ resource: one, kind: one, apiVersion: one.apiVersion })),
    show(object, apiVersion, cancellation) {
      if (object.apiVersion === apiVersion) return object
      const to = served(apiVersion)
      const stored = toStored(object, byApiVersion.get(object.apiVersion), to)
      return stored instanceof Promise ? stored.then((one) => shown(one, to, cancellation)) : shown(stored, to, cancellation)
    },
    decode: (value, apiVersion) => decodeMade(value, expectedKind(served(apiVersion))),
    unknownFields: (value, apiVersion) => decodeExpected(deepCopy(value), expectedKind(served(apiVersion)), { unknown: 'collect' }).unknownFields,
    schemaOf: (apiVersion) => byApiVersion.get(apiVersion)?.schema,
  }
}

/** A version that is no longer served can only be the storage version. */
function toStored(object: Frozen<KubeObject>, from: ServedResource | undefined, to: ServedResource): Promise<KubeObject> | KubeObject {
  const copy = deepCopy<KubeObject>(object)
  return !from || object.apiVersion === to.stored.storageApiVersion ? copy : from.toStored(from.toStrategy(copy))
}

function shown(stored: KubeObject, { view, apiVersion }: ServedResource, cancellation?: Cancellation): Promise<Frozen<KubeObject>> | Frozen<KubeObject> {
  const object = stored as Frozen<KubeObject>
  if (!view || object.apiVersion === apiVersion) return object
  if (!view.convertAll) return view.convert(object)
  return Promise.resolve(view.convertAll([object], cancellation)).then(([one]) => one as Frozen<KubeObject>)
}
