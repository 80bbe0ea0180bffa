package dev.skiff.suites;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

@Group("suite.skiff.dev")
@Version("v1")
public class Gadget extends CustomResource<Gadget.Spec, Gadget.Status> implements Namespaced {
  public static class Spec {
    public int size;
  }

  public static class Status {
    public boolean ready;
  }
}
