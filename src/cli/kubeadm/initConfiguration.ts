/** kubeadm's InitConfiguration (L4, pure): what it says about the first control plane. Upstream: kubeadm's apis/kubeadm/v1beta4 and v1beta3 (v1.36). */
import { CommandError } from '../exitCodes.ts'
import { isAdvertisable } from './endpoint.ts'
import type { Fields } from './fields.ts'

export interface ApiEndpoint {
  readonly advertiseAddress: string | undefined
  readonly bindPort: number | undefined
}

const dryRun = 'Skiff has no dry run of it: leave the field out to do it'

export function readInitConfiguration(fields: Fields): ApiEndpoint {
  fields.refused('dryRun', dryRun)
  const endpoint = readApiEndpoint(fields)
  fields.ignored('bootstrapTokens', 'left out: skiff token create makes tokens')
  fields.ignored('certificateKey', 'left out: skiff certs upload --certificate-key uploads the certificates with it')
  const node = fields.object('nodeRegistration')
  for (const name of ['name', 'criSocket', 'taints', 'kubeletExtraArgs', 'imagePullPolicy', 'imagePullSerial'])
    node?.ignored(name, 'left out: skiff up makes nodes of its own; skiff join honours it')
  node?.ignored('ignorePreflightErrors', 'left out: skiff doctor checks a host')
  node?.end()
  ignorePhases(fields)
  fields.end()
  return endpoint
}

/** The address and port of one API server. */
export function readApiEndpoint(fields: Fields): ApiEndpoint {
  const endpoint = fields.object('localAPIEndpoint')
  const advertiseAddress = endpoint?.text('advertiseAddress')
  if (endpoint && advertiseAddress !== undefined && !isAdvertisable(advertiseAddress))
    throw new CommandError('usage', `${endpoint.at('advertiseAddress')}: expected an IP address that other machines can use`)
  const bindPort = endpoint?.whole('bindPort', 1, 65_535)
  endpoint?.end()
  return { advertiseAddress, bindPort }
}

export function ignorePhases(fields: Fields): void {
  fields.ignored('skipPhases', 'left out: Skiff has no phases')
  fields.ignored('patches', 'left out: there are no manifests of static pods to change')
  fields.ignored('timeouts', 'left out: the times are fixed')
}
