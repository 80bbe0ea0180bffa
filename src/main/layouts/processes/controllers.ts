/** The controllers of a local cluster (L5), by the flags that it was made with. Upstream: cmd/kube-controller-manager (v1.36). */
import os from 'node:os'
import { secretTokens } from '#apiserver/authn/secretTokens'
import type { Component } from '#base/component'
import { featureGateWarnings } from '#base/featureGates'
import { createClient } from '#client/clientOverTransport'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers, turnableFeatures } from '#controllers/index'
import { createConfigFile } from '../../apiserver/configFile.ts'
import { readOptions } from '../../apiserver/options/readOptions.ts'
import { hostPaths } from '../../component/hostPaths.ts'
import type { Fence } from '../../component/leading.ts'
import { leadingComponent } from '../../component/leadingComponent.ts'
import { defaultLease } from '../../component/options/leaderElection.ts'
import { localControllerGroups } from '../../component/options/local.ts'
import { addressPlanOf } from '../../localCluster/addressPlan.ts'
import { leaseIdentityOf, leasesByWork } from '../../localCluster/controlPlanes.ts'
import { controllerArgs } from '../controllerArgs.ts'
import type { ControllersParts, TransportAs } from './layout.ts'
import { localLease } from './localLease.ts'

const authenticated = 'system:authenticated'
const user = { name: 'system:kube-controller-manager', groups: [authenticated] }

/** @throws Error when a flag cannot be read */
export async function controllersComponent(transportAs: TransportAs, { tools, state, name, pki }: ControllersParts): Promise<Component> {
  const context = { file: (name: string) => createConfigFile(name, tools.clock) }
  const args = controllerArgs(addressPlanOf(state), state.controllerManagerArgs ?? [])
  const { controllers: told, volumes, signing, features, lease } = await readOptions(localControllerGroups, args, context)
  for (const warning of new Set([...told.warnings, ...featureGateWarnings(features, turnableFeatures)])) tools.log.warn(warning)
  const clientAs = (userAgent: string) => createClient(transportAs(user, userAgent))
  const controlling = clientAs('kube-controller-manager')
  const clientFor = (serviceAccount: string) => {
    const account = `system:serviceaccount:kube-system:${serviceAccount}`
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', authenticated]
    return createClient(transportAs({ name: account, groups }, `kube-controller-manager/${serviceAccount}`))
  }
  const managing = (fence: Fence) =>
    createControllerManager(
      { ...tools, client: fence(controlling), clientFor: (account) => fence(clientFor(account)), log: tools.log.with('controllers') },
      controllers,
      {
        ...told.options,
        ...volumes,
        featureGates: features,
        hostPaths,
        controllers: told.controllers,
        rootCa: told.options.rootCa ?? pki.ca.cert,
        clusterSigning: signing.signing ?? { durationMs: signing.durationMs, authorityOf: () => pki.ca },
        serviceAccountToken: secretTokens(told.serviceAccountKey ?? pki.serviceAccountKey),
      },
    )
  const onLease = {
    tools,
    identity: leaseIdentityOf(state, name, os.hostname()),
    name: leasesByWork.controllers,
    client: clientAs('kube-controller-manager/leader-election'),
    lease: localLease(state, lease, defaultLease(leasesByWork.controllers)),
  }
  return leadingComponent(onLease, (fence, signal) => managing(fence).run(signal))
}
