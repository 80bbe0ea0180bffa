/** etcd's Auth service (L2): users, roles, and logging in. ./guard.ts decides who may call it. Upstream: etcd server/etcdserver/api/v3rpc/auth.go (v3.6). */
import type { EtcdApi } from '../api.ts'
import type { GuardedService } from '../guardedService.ts'
import { keyOf } from '../messages.ts'
import { notServed, refusal } from '../refusals.ts'
import type { Permit } from './authStore.ts'
import { type PermissionMessage, permissionMessage, permissionOf } from './records.ts'

interface Named {
  readonly name: string
}

interface WithRole extends Named {
  readonly role: string
}

interface WithPassword extends Named {
  readonly password: string
}

export function authService({ auth, header }: EtcdApi): GuardedService {
  const changed = async (change: Promise<void>) => {
    await change
    return { header: header() }
  }
  return {
    methods: {
      AuthEnable: (_: object, permit: Permit) => changed(auth.enable(permit)),
      AuthDisable: (_: object, permit: Permit) => changed(auth.disable(permit)),
      AuthStatus: () => ({ header: header(), enabled: auth.isEnabled, authRevision: auth.revision }),
      Authenticate: async ({ name, password }: WithPassword) => ({ token: await auth.authenticate(name, password), header: header() }),
      UserAdd: ({ name, password, options }: WithPassword & { readonly options: { readonly noPassword: boolean } | null }, permit: Permit) =>
        changed(auth.addUser(permit, name, password, options?.noPassword ?? false)),
      UserGet: ({ name }: Named) => ({ header: header(), names: auth.rolesOf(name) }),
      UserList: () => ({ header: header(), names: auth.userNames() }),
      UserDelete: ({ name }: Named, permit: Permit) => changed(auth.deleteUser(permit, name)),
      UserChangePassword: ({ name, password }: WithPassword, permit: Permit) => changed(auth.changePassword(permit, name, password)),
      UserGrantRole: ({ name, role }: WithRole, permit: Permit) => changed(auth.grantRole(permit, name, role)),
      UserRevokeRole: ({ name, role }: WithRole, permit: Permit) => changed(auth.revokeRole(permit, name, role)),
      RoleAdd: ({ name }: Named, permit: Permit) => changed(auth.addRole(permit, name)),
      RoleGet: ({ name }: Named) => ({ header: header(), perm: auth.permissionsOf(name).map(permissionMessage) }),
      RoleList: () => ({ header: header(), names: auth.roleNames() }),
      RoleDelete: ({ name }: Named, permit: Permit) => changed(auth.deleteRole(permit, name)),
      RoleGrantPermission: ({ name, perm }: Named & { readonly perm: PermissionMessage | null }, permit: Permit) => {
        if (!perm) throw refusal('permissionNotGiven')
        const permission = permissionOf(perm)
        if (!permission) throw notServed('the type of a permission is READ, WRITE or READWRITE')
        return changed(auth.grantPermission(permit, name, permission))
      },
      RoleRevokePermission: ({ name, key, rangeEnd }: Named & { readonly key: Buffer; readonly rangeEnd: Buffer }, permit: Permit) =>
        changed(auth.revokePermission(permit, name, keyOf(key), keyOf(rangeEnd))),
    },
  }
}
