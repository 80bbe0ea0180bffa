/**
 * Flags of kube-controller-manager that are about what is done elsewhere (L5): taken, so that manifests work as they are, unless they ask for
 * what is not there. Upstream: cmd/kube-controller-manager/app/options, cloud-provider/options/kubecloudshared.go (v1.36).
 */
import { duration, flag, text, UsageError } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

const ofClouds = 'Accepted, without effect: what clouds need is the work of their own controller manager'

export const elsewhereOptions = optionGroup({
  name: 'Elsewhere',
  flags: {
    'allow-untagged-cloud': flag(ofClouds),
    'cidr-allocator-type': text('Who gives nodes their ranges: RangeAllocator, the controller here', 'RangeAllocator'),
    'cloud-provider': text('Empty or external'),
    'configure-cloud-routes': flag(ofClouds, true),
    'min-resync-period': duration('Accepted, without effect: caches follow their watches and are not gone through again', 12 * 3_600_000),
    'route-reconciliation-period': duration(ofClouds, 10_000),
  },
  settings(values) {
    const { 'cidr-allocator-type': allocator, 'cloud-provider': cloud } = values
    const faults = [
      ...(allocator === 'RangeAllocator' ? [] : [`--cidr-allocator-type "${allocator}" is not there: only RangeAllocator`]),
      ...(['', 'external'].includes(cloud) ? [] : [`--cloud-provider "${cloud}" is not there: only external`]),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return {}
  },
})
