/** The namespace that policies see with an object (L3). */
import type { Namespace } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { namespaces } from '../matching/selectors.ts'

/** The namespace of the object; undefined for a Namespace itself. @throws StatusError NotFound */
export function policyNamespace({ namespace, kind }: AdmissionAttributes, reader: ObjectReader): Frozen<Namespace> | undefined {
  if (namespace === '' || (kind.group === '' && kind.kind === 'Namespace')) return undefined
  const found = reader.get<Namespace>(namespaces, '', namespace)
  if (!found) throw notFound(namespaces, namespace)
  return found
}
