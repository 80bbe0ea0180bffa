/**
 * The controllers' flags of a local cluster (L5): as kubeadm does, bootstrap tokens sign the cluster's description and expire; claims get local volumes.
 */
import { bootstrapSigner } from '#controllers/bootstrap/signer'
import { tokenCleaner } from '#controllers/bootstrap/tokenCleaner'
import { localPathProvisioner } from '#controllers/localPath/localPathProvisioner'
import type { AddressPlan } from '../localCluster/addressPlan.ts'

/** @param own the user's flags */
export function controllerArgs({ clusterCidr, serviceCidr }: AddressPlan, own: readonly string[]): string[] {
  return [
    '--allocate-node-cidrs=true',
    `--cluster-cidr=${clusterCidr}`,
    `--service-cluster-ip-range=${serviceCidr}`,
    ...own,
    // The first mention of a controller decides: the user's flags come first, so that they can turn these off.
    `--controllers=*,${bootstrapSigner.name},${tokenCleaner.name},${localPathProvisioner.name}`,
  ]
}
