/** Decodes and defaults an object that a webhook or policy changed (L3). */
import { groupVersion, type KubeObject } from '#api/machinery/meta'
import { badRequest } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import { decodeMade } from '../../core/body.ts'
import type { AdmissionAttributes } from '../admission.ts'

/** Takes the value over. @param apiVersion the version in which the plugin changed it. @throws StatusError when it is not such an object any more */
export function decodeChanged(value: unknown, { forms, kind: own }: AdmissionAttributes, apiVersion: string): KubeObject {
  const { kind, apiVersion: got } = (typeof value === 'object' && value !== null ? value : {}) as Partial<KubeObject>
  if (kind !== own.kind || got !== apiVersion) throw badRequest(`unable to decode ${got ?? ''}, Kind=${kind ?? ''} as ${apiVersion}, Kind=${own.kind}`)
  if (forms) return forms.decode(value, apiVersion)
  const schema = schemaFor(own.group, own.version, own.kind)
  // Options of connections have no schema, because they are never stored.
  return schema && apiVersion === groupVersion(own) ? decodeMade(value, { ...own, schema }) : (value as KubeObject)
}
