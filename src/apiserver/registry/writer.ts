/**
 * The dependencies of the registry's writes (L3), and the functions that create, update and delete share.
 */
import type { StrategyContext } from '#api/kinds/defineKind'
import { type FieldError, FieldPath, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { FeatureGateSettings } from '#base/featureGates'
import type { Random } from '#base/random'
import type { AdmissionAttributes, AdmissionOperation } from '../admission/admission.ts'
import type { AdmissionChain } from '../admission/chain.ts'
import type { Authorizer } from '../authz/authorizer.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { Storage } from './storage.ts'
import type { WriteContext } from './storedResource.ts'
import { type AdmissionContext, WriteAttributes } from './writeAttributes.ts'

export interface WriterDeps {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly featureGates?: FeatureGateSettings | undefined
  readonly admission: AdmissionChain
  /** Asked when a write does more than its verb, such as an update that creates. */
  readonly authorizers: readonly Authorizer[]
  /** For rules that read other objects, such as the object's namespace. */
  readonly reader: ObjectReader
}

export const rootPath = FieldPath.of()
const namespaces = { group: '', resource: 'namespaces' }

export function strategyContext(deps: WriterDeps, context: WriteContext): StrategyContext {
  const namespaceLabels = () => deps.reader.get<KubeObject>(namespaces, '', context.namespace)?.metadata.labels
  return { nowMs: deps.clock.now(), random: deps.random, featureGates: deps.featureGates, user: context.user, namespaceLabels, warn: context.warn }
}

/** The attributes of a write that admission plugins see. */
export function attributesOf(
  context: AdmissionContext,
  operation: AdmissionOperation,
  name: string,
  object: KubeObject | undefined,
  oldObject: Frozen<KubeObject> | undefined,
  options?: Readonly<Record<string, unknown>>,
): AdmissionAttributes {
  return new WriteAttributes(context, operation, { name, object, oldObject, options })
}

/** @throws Status Invalid when the user lacks a permission for the effects of a valid write */
export async function checkRights(deps: WriterDeps, context: WriteContext, name: string, object: KubeObject, old?: Frozen<KubeObject>): Promise<void> {
  const { reader, authorizers } = deps
  const { served, subresource, user, request } = context
  const verb = request?.info?.verb ?? (old ? 'update' : 'create')
  const write = { object: object as Frozen<KubeObject>, old, subresource, verb, version: served.version, user, authorizers, reader, nowMs: deps.clock.now() }
  throwIfInvalid(context, name, (await served.stored.hooks?.checkRights?.(write)) ?? [])
}

/** Throws the 422 that collects all errors, if there are any. */
export function throwIfInvalid(context: WriteContext, name: string, errors: readonly FieldError[]): void {
  context.request?.trace?.step('validation', errors.length === 0 ? 'valid' : `refused: ${errors.length} faults`)
  if (errors.length > 0) throw invalid({ group: context.served.group, kind: context.served.kind }, name, errors)
}
