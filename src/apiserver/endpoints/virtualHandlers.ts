/**
 * Endpoints of resources that are computed (L3): access reviews and the like, pod bindings by the collection, component statuses.
 */
import { builtInResource } from '#api/discovery/resources'
import type { KubeObject } from '#api/machinery/meta'
import { schemaFor } from '#api/schema/builtIn'
import { decodeBody } from '../core/body.ts'
import { encodingOf, negotiate } from '../core/negotiate.ts'
import type { RequestInfo, UserInfo } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import type { VirtualResource } from '../core/virtualResource.ts'
import { admit } from '../registry/admit.ts'
import { attributesOf } from '../registry/writer.ts'
import { methodNotAllowed } from './router.ts'
import { dryRunOf, type EndpointDeps } from './scope.ts'

export function virtualHandlers(deps: EndpointDeps, resources: readonly VirtualResource[]): ReadonlyMap<string, Handler> {
  return new Map(resources.map((one) => [`${one.group}/${one.version}/${one.resource}`, handlerOf(deps, one)]))
}

function handlerOf(deps: EndpointDeps, virtual: VirtualResource): Handler {
  const { group, version, resource } = virtual
  const facts = builtInResource(group, version, resource)
  const schema = facts && schemaFor(group, version, facts.kind)
  if (!facts || !schema) throw new Error(`no facts for ${group}/${version} ${resource}`)
  const { kind } = facts
  const served = { group, version, resource, kind, stored: { forms: undefined } }
  return async (request) => {
    const info = request.info as RequestInfo
    if (info.verb !== 'create' || info.parts.length > 0) throw methodNotAllowed()
    const form = negotiate(request)
    const object: KubeObject & { spec?: object } = await decodeBody({ deps, request }, { group, version, kind, schema })
    // Upstream's spec is a struct, not a pointer: a review without a spec has an empty one.
    if (schema.fields?.has('spec')) object.spec ??= {}
    const user = request.user as UserInfo
    const context = {
      served,
      subresource: '',
      namespace: info.namespace,
      user,
      dryRun: dryRunOf(request.query.getAll('dryRun'), 'CreateOptions'),
      warn: (text: string) => request.warnings.push(text),
      cancellation: request.cancellation,
      request,
    }
    const attributes = attributesOf(context, 'CREATE', object.metadata.name ?? '', object, undefined)
    await admit(deps.writer.admission, attributes)
    await deps.writer.admission.validate(attributes)
    const value = await virtual.create({ object, user, namespace: info.namespace, signal: request.cancellation.signal })
    return { type: 'value', status: 201, value, ...encodingOf(form) }
  }
}
