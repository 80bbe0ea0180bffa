/**
 * Admission of the operation CONNECT (L3): exec, attach, port-forward, proxy. Plugins get the query as an options object, such as PodExecOptions.
 * Upstream: handlers.ConnectResource.
 */
import type { SubresourceFacts } from '#api/discovery/resources'
import { groupVersion, type KubeObject } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { truthy } from '../../core/requestInfo.ts'
import { admit } from '../../registry/admit.ts'
import { attributesOf } from '../../registry/writer.ts'
import { type Scope, writeContext } from '../scope.ts'

/** @throws what a plugin refuses with, usually Forbidden */
export async function connectAdmission(scope: Scope): Promise<void> {
  const { deps, info, request, subresource } = scope
  if (deps.writer.admission.isEmpty) return
  const context = { ...writeContext(scope, subresource?.kind.kind ?? ''), kind: subresource?.kind }
  const attributes = attributesOf(context, 'CONNECT', info.name, subresource && connectOptions(subresource, request.query), undefined)
  await admit(deps.writer.admission, attributes)
  await deps.writer.admission.validate(attributes)
}

/** PodExecOptions and the like. */
function connectOptions({ kind, parameters }: SubresourceFacts, query: URLSearchParams): KubeObject {
  const options: Record<string, unknown> = bareMap({ kind: kind.kind, apiVersion: groupVersion(kind) })
  for (const { name, type } of parameters) {
    if (!query.has(name)) continue
    const values = query.getAll(name).map((value) => (type === 'boolean' ? truthy(value) : type === 'integer' ? Number(value) : value))
    options[name] = lists.has(name) ? values : values[0]
  }
  return options as unknown as KubeObject
}

/** Options that may be repeated. */
const lists: ReadonlySet<string> = new Set(['command', 'ports'])
