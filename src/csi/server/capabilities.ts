/** The capabilities of a driver (L2): derived from the methods that it has, and from the features that no method shows. */
import type { CsiDriver } from './csiTypes.ts'

type Rule = readonly [name: string, isThere: unknown]

const rpcs = (rules: readonly Rule[]) => ({ capabilities: rules.filter(([, isThere]) => isThere).map(([type]) => ({ rpc: { type } })) })

export function pluginCapabilities({ controller, groupController, features = {} }: CsiDriver) {
  const services: readonly Rule[] = [
    ['CONTROLLER_SERVICE', controller],
    ['VOLUME_ACCESSIBILITY_CONSTRAINTS', features.topology],
    ['GROUP_CONTROLLER_SERVICE', groupController],
  ]
  return {
    capabilities: [
      ...services.filter(([, isThere]) => isThere).map(([type]) => ({ service: { type } })),
      ...(features.expansion ? [{ volumeExpansion: { type: features.expansion } }] : []),
    ],
  }
}

export function controllerCapabilities({ controller, features = {} }: CsiDriver) {
  return rpcs([
    ['CREATE_DELETE_VOLUME', controller?.createVolume && controller?.deleteVolume],
    ['PUBLISH_UNPUBLISH_VOLUME', controller?.controllerPublishVolume && controller?.controllerUnpublishVolume],
    ['LIST_VOLUMES', controller?.listVolumes],
    ['GET_CAPACITY', controller?.getCapacity],
    ['CREATE_DELETE_SNAPSHOT', controller?.createSnapshot && controller?.deleteSnapshot],
    ['LIST_SNAPSHOTS', controller?.listSnapshots],
    ['GET_SNAPSHOT', controller?.getSnapshot],
    ['CLONE_VOLUME', features.clones],
    ['PUBLISH_READONLY', features.publishReadonly],
    ['EXPAND_VOLUME', controller?.controllerExpandVolume],
    ['LIST_VOLUMES_PUBLISHED_NODES', features.publishedNodes],
    ['VOLUME_CONDITION', features.volumeCondition],
    ['GET_VOLUME', controller?.controllerGetVolume],
    ['SINGLE_NODE_MULTI_WRITER', features.singleNodeMultiWriter],
    ['MODIFY_VOLUME', controller?.controllerModifyVolume],
  ])
}

export function groupControllerCapabilities({ groupController }: CsiDriver) {
  return rpcs([['CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT', groupController]])
}

export function nodeCapabilities({ node, features = {} }: CsiDriver) {
  return rpcs([
    ['STAGE_UNSTAGE_VOLUME', node?.nodeStageVolume && node.nodeUnstageVolume],
    ['GET_VOLUME_STATS', node?.nodeGetVolumeStats],
    ['EXPAND_VOLUME', node?.nodeExpandVolume],
    ['VOLUME_CONDITION', features.volumeCondition && node?.nodeGetVolumeStats],
    ['SINGLE_NODE_MULTI_WRITER', features.singleNodeMultiWriter],
    ['VOLUME_MOUNT_GROUP', features.volumeMountGroup],
  ])
}
