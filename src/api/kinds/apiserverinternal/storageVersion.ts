/** StorageVersion (L1): which versions each API server reads and writes. Upstream: pkg/registry/apiserverinternal (v1.36). */
import type { StorageVersion } from '#api/gen/types/apiserverinternal.v1alpha1'
import type { Frozen } from '#api/machinery/meta'
import { nameIsPathSegment } from '#api/machinery/names'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

const shown = 3

export const storageVersion = defineKind<StorageVersion>({
  group: 'internal.apiserver.k8s.io',
  kind: 'StorageVersion',
  generation: false,
  allowUnconditionalUpdate: false,
  validateName: nameIsPathSegment,
  columns: [nameColumn, text('CommonEncodingVersion', (obj) => obj.status?.commonEncodingVersion ?? unset), text('StorageVersions', versionsText), ageColumn],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  status: statusStrategy<StorageVersion>(),
})

function versionsText(obj: Frozen<StorageVersion>): string {
  const list = (obj.status?.storageVersions ?? []).map((version) => `${version.apiServerID}=${version.encodingVersion}`)
  if (list.length === 0) return unset
  const head = list.slice(0, shown).join(',')
  return list.length > shown ? `${head} + ${list.length - shown} more...` : head
}
