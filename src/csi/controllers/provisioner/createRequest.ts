/** The CreateVolume call for a claim (L3). Upstream: external-provisioner, prepareProvision. */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { quantityValue } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import { volumeAttributesClasses } from '#client/builtIn'
import type { Client } from '#client/client'
import type { CreateVolumeRequest, TextMap, VolumeContentSource } from '../../server/csiTypes.ts'
import type { CsiDriverFacts } from '../driver.ts'
import { credentialsOf, type SecretReference, type SecretTokens, secretReferenceOf } from '../secrets.ts'
import { volumeCapabilityOf } from '../volumeCapability.ts'
import { claimParameters, driverParameters, fsTypeOf, type NamedObject, secretKeys } from './parameters.ts'
import type { ProvisionedFacts } from './provisionedVolume.ts'
import { ProvisioningError } from './provisioningError.ts'
import { NodeUnknownError, type TopologyRequirement } from './topology.ts'

type Claim = Frozen<PersistentVolumeClaim>

export interface RequestDeps {
  readonly client: Client
  readonly driver: CsiDriverFacts
  readonly options: { readonly extraCreateMetadata: boolean; readonly defaultFsType: string }
  /** @throws NodeUnknownError; Error when the topology is not known yet */
  topologyOf(claim: Claim, storageClass: Frozen<StorageClass>, nodeName: string | undefined): TopologyRequirement | undefined
  /** Protects the source, too. @throws ProvisioningError */
  contentSourceOf(claim: Claim, storageClass: Frozen<StorageClass>, signal: AbortSignal): Promise<VolumeContentSource | undefined>
}

export interface PreparedRequest extends Pick<ProvisionedFacts, 'fsType' | 'secretFields' | 'deletionSecret' | 'modificationSecret'> {
  readonly request: CreateVolumeRequest & { readonly capacityRange: { readonly requiredBytes: number; readonly limitBytes: number } }
}

export const volumeNameOf = ({ metadata }: Claim) => `pvc-${metadata.uid}`
export const selectedNodeOf = ({ metadata }: Claim) => ownValue(metadata.annotations, volumeAnnotations.selectedNode) || undefined

/** The claim's source, by the older field if it has that. */
export const dataSourceOf = ({ spec }: Claim) => spec.dataSource ?? spec.dataSourceRef

/** @throws ProvisioningError */
export async function prepareRequest(deps: RequestDeps, claim: Claim, storageClass: Frozen<StorageClass>, signal: AbortSignal): Promise<PreparedRequest> {
  const { client, driver, options } = deps
  const { parameters = {} } = storageClass
  const name = volumeNameOf(claim)
  const attributesClass = claim.spec.volumeAttributesClassName || undefined
  checkCapabilities(driver, attributesClass !== undefined)
  if (claim.spec.selector) throw new ProvisioningError('finished', 'claim Selector is not supported')
  const fsType = stage('finished', () => fsTypeOf(parameters, options.defaultFsType))
  const volumeCapabilities = stage('finished', () => capabilitiesOf(driver, claim, storageClass, fsType))
  const volumeContentSource = (await deps.contentSourceOf(claim, storageClass, signal)) ?? null
  const accessibilityRequirements = requirementOf(deps, claim, storageClass) ?? null
  const references = stage('unchanged', () => secretReferencesOf(parameters, claim, name))
  const secrets = await stageAsync('unchanged', credentialsOf(client, references.provisioner, signal))
  const sent = stage('finished', () => driverParameters(parameters))
  const request = {
    name,
    capacityRange: { requiredBytes: quantityValue(claim.spec.resources?.requests?.storage ?? '0'), limitBytes: 0 },
    volumeCapabilities,
    parameters: options.extraCreateMetadata ? { ...sent, ...claimParameters(claim.metadata, name) } : sent,
    secrets,
    volumeContentSource,
    accessibilityRequirements,
    mutableParameters: attributesClass === undefined ? {} : await mutableParametersOf(deps, attributesClass, signal),
  }
  return { request, fsType, secretFields: references.fields, deletionSecret: references.provisioner, modificationSecret: references.modify }
}

function checkCapabilities({ plugin, controller }: CsiDriverFacts, mustModify: boolean): void {
  const lacks = (what: string, capability: string) => {
    throw new ProvisioningError('finished', `CSI driver does not support ${what}: ${capability} capability is not reported`)
  }
  if (!plugin.has('CONTROLLER_SERVICE')) lacks('dynamic provisioning', 'plugin CONTROLLER_SERVICE')
  if (!controller.has('CREATE_DELETE_VOLUME')) lacks('dynamic provisioning', 'controller CREATE_DELETE_VOLUME')
  if (mustModify && !controller.has('MODIFY_VOLUME')) lacks('VolumeAttributesClass', 'controller MODIFY_VOLUME')
}

/** One for each access mode of the claim. */
function capabilitiesOf({ controller }: CsiDriverFacts, { spec }: Claim, { mountOptions = [] }: Frozen<StorageClass>, fsType: string) {
  const facts = { volumeMode: spec.volumeMode, fsType, mountOptions, knowsSingleNodeModes: controller.has('SINGLE_NODE_MULTI_WRITER') }
  return (spec.accessModes ?? []).map((mode) => volumeCapabilityOf([mode], facts))
}

function requirementOf(deps: RequestDeps, claim: Claim, storageClass: Frozen<StorageClass>): TopologyRequirement | undefined {
  try {
    return deps.topologyOf(claim, storageClass, selectedNodeOf(claim))
  } catch (error) {
    if (error instanceof NodeUnknownError) throw new ProvisioningError('reschedule', error.message, error)
    throw new ProvisioningError('unchanged', `error generating accessibility requirements: ${messageOf(error)}`, error)
  }
}

function secretReferencesOf(parameters: TextMap, claim: Claim, volumeName: string) {
  const tokens = secretTokensOf(volumeName, claim.metadata)
  const of = (keys: (typeof secretKeys)[keyof typeof secretKeys]) => secretReferenceOf(parameters, keys, secretKeys.default, tokens)
  const field = <Name extends string>(name: Name, reference: SecretReference | undefined) =>
    (reference ? { [name]: reference } : {}) as Record<Name, SecretReference>
  return {
    provisioner: of(secretKeys.provisioner),
    modify: of(secretKeys.controllerModify),
    fields: {
      ...field('controllerPublishSecretRef', of(secretKeys.controllerPublish)),
      ...field('nodeStageSecretRef', of(secretKeys.nodeStage)),
      ...field('nodePublishSecretRef', of(secretKeys.nodePublish)),
      ...field('controllerExpandSecretRef', of(secretKeys.controllerExpand)),
      ...field('nodeExpandSecretRef', of(secretKeys.nodeExpand)),
    },
  }
}

/** A user chooses the name and the annotations of a claim, so they choose the name of a Secret only, never its namespace. */
export function secretTokensOf(
  volumeName: string,
  { namespace = '', name = '', annotations = {} }: NamedObject & { readonly annotations?: TextMap | undefined },
): SecretTokens {
  const forNamespace = new Map([
    ['pv.name', volumeName],
    ['pvc.namespace', namespace],
  ])
  const ofAnnotations = Object.entries(annotations).map(([key, value]) => [`pvc.annotations['${key}']`, value] as const)
  return { forNamespace, forName: new Map([...forNamespace, ['pvc.name', name], ...ofAnnotations]) }
}

async function mutableParametersOf({ client, driver }: RequestDeps, name: string, signal: AbortSignal): Promise<TextMap> {
  const { driverName, parameters = {} } = await stageAsync('unchanged', client.of(volumeAttributesClasses).get({ name }, { signal }))
  if (driverName === driver.name) return parameters
  throw new ProvisioningError('finished', `VAC ${name} referenced in PVC is for driver ${driverName} which does not match driver name ${driver.name}`)
}

function stage<T>(state: 'finished' | 'unchanged', work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new ProvisioningError(state, messageOf(error), error)
  }
}

async function stageAsync<T>(state: 'unchanged', work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw new ProvisioningError(state, messageOf(error), error)
  }
}
