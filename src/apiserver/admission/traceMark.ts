/**
 * Annotates objects with the trace of the request that writes their spec (L3), so that the components that act on them continue that trace. It runs only
 * where --tracing-mark-objects asks for it, marks only in sampled requests, and takes a writer's own mark back. Upstream has no such thing: its traces end
 * with the request.
 */
import { semanticEqual } from '#api/machinery/equality'
import { formatTraceParent, type Tracer, traceAnnotation } from '#base/traceContext'
import type { AdmissionAttributes, AdmissionPlugin } from './admission.ts'

/** Nothing acts on these. */
const unmarked: ReadonlySet<string> = new Set(['events', 'leases'])

export function traceMark(tracer: Tracer): AdmissionPlugin {
  return {
    name: 'TraceMark',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit(attributes) {
      const { object, oldObject } = attributes
      if (!object) return
      const context = isMarked(attributes) ? tracer.request() : undefined
      const mark = context ? formatTraceParent(context) : oldObject?.metadata.annotations?.[traceAnnotation]
      // Writers must not choose which work is sampled.
      if (object.metadata.annotations?.[traceAnnotation] === mark) return
      const { [traceAnnotation]: _, ...others } = object.metadata.annotations ?? {}
      object.metadata.annotations = mark === undefined ? others : { ...others, [traceAnnotation]: mark }
    },
  }
}

function isMarked({ resource, subresource, object, oldObject }: AdmissionAttributes): boolean {
  if (subresource !== '' || unmarked.has(resource.resource)) return false
  const specOf = (of: object | undefined) => (of as { readonly spec?: unknown } | undefined)?.spec
  return !oldObject || !semanticEqual(specOf(object), specOf(oldObject))
}
