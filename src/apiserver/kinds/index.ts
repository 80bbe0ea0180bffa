/** The kinds whose writes need more of the server than their strategies, which are pure, can do (L3): one line each. */
import type { Random } from '#base/random'
import type { Store } from '#store/store'
import type { KindStorages } from '../registry/kindStorage.ts'
import type { StorageSettings } from '../registry/storageSettings.ts'
import { certificateRequestStorage } from './certificateRequests.ts'
import { claimStorage } from './claimStatusRights.ts'
import { eventStorage } from './events.ts'
import { podCertificateStorage } from './podCertificates.ts'
import { policyStorages } from './policyParams.ts'
import { defaultServiceNetwork, type ServiceNetwork, serviceStorage } from './services/serviceStorage.ts'
import { trustBundleStorage } from './trustBundles.ts'

export interface KindStorageDeps extends StorageSettings {
  readonly store: Store
  readonly random: Random
  /** Where services get addresses and node ports from; absent: the defaults. */
  readonly serviceNetwork?: ServiceNetwork | undefined
  /** Upstream's --event-ttl; absent: an hour. */
  readonly eventTtlSeconds?: number | undefined
}

export function kindStorages({ serviceNetwork = defaultServiceNetwork, eventTtlSeconds, ...deps }: KindStorageDeps): KindStorages {
  const events = eventStorage(eventTtlSeconds)
  return {
    ...policyStorages,
    '/events': events,
    'events.k8s.io/events': events,
    '/services': serviceStorage({ ...deps, network: serviceNetwork }),
    'certificates.k8s.io/certificatesigningrequests': certificateRequestStorage,
    'certificates.k8s.io/clustertrustbundles': trustBundleStorage,
    'certificates.k8s.io/podcertificaterequests': podCertificateStorage,
    'resource.k8s.io/resourceclaims': claimStorage,
  }
}
