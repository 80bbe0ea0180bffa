/** The answers of /skiff/store (L1): the store's keys as they are at a revision, and the versions of one key. Values are read through the API, which decodes them. */
export const storePath = '/skiff/store'

/** What a key holds. */
export interface StoredObjectName {
  readonly group: string
  /** Plural. */
  readonly resource: string
  /** Empty for objects of the cluster. */
  readonly namespace: string
  readonly name: string
}

export interface StoreKey {
  readonly key: string
  readonly createRevision: number
  readonly modRevision: number
  /** 1 at creation, one more at each write. */
  readonly version: number
  /** With which lease it ends. */
  readonly lease?: string
  /** Absent: it is no object of a resource that is served. */
  readonly object?: StoredObjectName
}

export interface StoreFolder {
  /** Ends with a slash. */
  readonly prefix: string
  /** How many keys begin with it. */
  readonly count: number
}

/** GET /skiff/store?prefix=/registry/&revision=N&from=KEY: what is directly below a prefix, by key. */
export interface StoreListing {
  /** That was read. */
  readonly revision: number
  readonly folders: readonly StoreFolder[]
  readonly keys: readonly StoreKey[]
  /** The next `from`. Absent: this is all. */
  readonly next?: string
}

export interface StoreVersion {
  readonly revision: number
  readonly version: number
  readonly bytes: number
}

/** GET /skiff/store?key=KEY&revision=N: the versions of a key since it was created, the newest first. */
export interface StoreKeyVersions {
  readonly versions: readonly StoreVersion[]
  /** Older ones are compacted, or beyond the limit. */
  readonly isCut: boolean
  readonly object?: StoredObjectName
}
