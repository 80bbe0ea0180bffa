/**
 * pods/binding (L3): assigns a pod to a node. Sets spec.nodeName and the PodScheduled condition in one write.
 * Upstream: pkg/registry/core/pod/storage BindingREST.
 */
import type { Binding, Pod } from '#api/gen/types/core.v1'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, conflict, notFound } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import { noAdmission } from '../../admission/chain.ts'
import type { Answer } from '../../core/answer.ts'
import { decodeBody } from '../../core/body.ts'
import type { RequestInfo } from '../../core/request.ts'
import type { Handler } from '../../core/stage.ts'
import { admit } from '../../registry/admit.ts'
import { ensureNamespace } from '../../registry/create.ts'
import { updateObject } from '../../registry/update.ts'
import { attributesOf } from '../../registry/writer.ts'
import { methodNotAllowed } from '../router.ts'
import { type EndpointDeps, type Scope, writeContext } from '../scope.ts'
import { setPodCondition } from './podConditions.ts'

export const bindingHandlers = { create: bind }

const pods = { group: '', resource: 'pods' }
const bindingKind = { group: '', version: 'v1', kind: 'Binding' }
const bindings = { group: '', version: 'v1', resource: 'bindings' }

/** POST to the collection `bindings` names the pod in the body. */
export function bindingsHandler(endpoints: EndpointDeps): Handler {
  return (request) => {
    const served = endpoints.registry.served('', 'v1', 'pods')
    const info = request.info as RequestInfo
    if (!served || info.verb !== 'create' || info.parts.length > 0) throw methodNotAllowed()
    return bind({ deps: endpoints, request, info: { ...info, subresource: 'binding' }, served })
  }
}

async function bind(scope: Scope): Promise<Answer> {
  const { deps, info } = scope
  const schema = schemaFor('', 'v1', 'Binding')
  if (!schema) throw new Error('no schema for Binding')
  const binding = (await decodeBody(scope, { group: '', version: 'v1', kind: 'Binding', schema })) as unknown as Binding
  const name = info.name || (binding.metadata.name ?? '')
  binding.target ??= {}
  binding.metadata.name ||= name
  if (binding.metadata.name !== name) throw badRequest('name in URL does not match name in Binding object')
  checkTarget(binding, name)
  const context = writeContext(scope, 'CreateOptions')
  ensureNamespace(context, binding as unknown as KubeObject)
  // As upstream, rules of policies and webhooks name `bindings` and `pods/binding` separately.
  const asked = info.resource === 'bindings' ? { ...context, served: { ...context.served, ...bindings }, subresource: '' } : context
  const attributes = attributesOf({ ...asked, kind: bindingKind }, 'CREATE', name, binding as unknown as KubeObject, undefined)
  await admit(deps.writer.admission, attributes)
  await deps.writer.admission.validate(attributes)
  // As upstream, this write is not tracked in managedFields: spec.nodeName has no owner.
  await updateObject(
    { ...deps.writer, admission: noAdmission },
    { ...context, managedFieldsDone: true },
    {
      name,
      preconditions: { uid: binding.metadata.uid, resourceVersion: binding.metadata.resourceVersion },
      transform: (current) => {
        if (!current) throw notFound(pods, name)
        return assign(current as unknown as Frozen<Pod>, binding, deps.clock.now()) as unknown as KubeObject
      },
    },
  )
  return { type: 'value', status: 201, value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } }
}

function checkTarget(binding: Binding, name: string): void {
  const at = FieldPath.of('target')
  const errors = []
  if (binding.target.kind && binding.target.kind !== 'Node') errors.push(fieldError.notSupported(at.child('kind'), binding.target.kind, ['Node', '<empty>']))
  if (!binding.target.name) errors.push(fieldError.required(at.child('name')))
  if (errors.length > 0) throw invalid({ group: '', kind: 'Binding' }, name, errors)
}

/** The bound pod shares all unchanged parts with the old one, so most of it is not copied, compared or frozen again. */
function assign(current: Frozen<Pod>, binding: Binding, nowMs: number): Pod {
  const name = current.metadata.name ?? ''
  const refuse = (why: string) => conflict({ group: '', resource: 'pods/binding' }, name, why)
  if (current.metadata.deletionTimestamp) throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`)
  if (current.spec?.nodeName) throw refuse(`pod ${name} is already assigned to node ${JSON.stringify(current.spec.nodeName)}`)
  if (current.spec?.schedulingGates?.length) throw refuse(`pod ${name} has non-empty .spec.schedulingGates`)
  const pod = {
    ...current,
    metadata: { ...current.metadata },
    spec: { ...current.spec, containers: current.spec?.containers ?? [], nodeName: binding.target.name },
    status: { ...current.status, conditions: [...(current.status?.conditions ?? [])] },
  } as Pod
  const { annotations, labels } = binding.metadata
  if (annotations) pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations }
  if (labels) pod.metadata.labels = { ...pod.metadata.labels, ...labels }
  setPodCondition(pod, { type: 'PodScheduled', status: 'True' }, nowMs)
  // The pod has its node, and the hint could name another.
  delete pod.status?.nominatedNodeName
  return pod
}
