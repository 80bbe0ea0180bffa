/** The store of a test API server that names none (testing). A file that is loaded before the tests may put another one in its place. */

import type { StorageMediaType } from '#apiserver/registry/storedForm'
import type { Clock } from '#base/clock'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'

export const defaultStore: { open(clock: Clock): Store | Promise<Store>; mediaType?: StorageMediaType } = { open: (clock) => createMemoryStore({ clock }) }
