package dev.skiff.suites;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** fabric8's client, unmodified, against a Skiff cluster named by KUBECONFIG. Nothing here knows that it is not upstream's server. */
class ClusterTest {
  private static final long PATIENCE_SECONDS = 60;
  private static KubernetesClient client;
  private static String namespace;

  @BeforeAll
  static void connect() {
    client = new KubernetesClientBuilder().build();
    var made = new NamespaceBuilder().withNewMetadata().withGenerateName("fabric8-").endMetadata().build();
    namespace = client.namespaces().resource(made).create().getMetadata().getName();
  }

  @AfterAll
  static void close() {
    client.namespaces().withName(namespace).delete();
    client.close();
  }

  private static ConfigMap map(String name, Map<String, String> data) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace(namespace).endMetadata().withData(data).build();
  }

  private static List<String> take(BlockingQueue<String> queue, int count) throws InterruptedException {
    var taken = new ArrayList<String>();
    while (taken.size() < count) {
      var next = queue.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
      if (next == null) break;
      taken.add(next);
    }
    return taken;
  }

  @Test
  void aWatchDeliversEveryChangeInOrder() throws Exception {
    var seen = new LinkedBlockingQueue<String>();
    var watcher = new Watcher<ConfigMap>() {
      @Override
      public void eventReceived(Action action, ConfigMap map) {
        if (action != Action.BOOKMARK) seen.add(action + " " + map.getData().get("n"));
      }

      @Override
      public void onClose(WatcherException cause) {
        seen.add("closed " + cause);
      }
    };
    var maps = client.configMaps().inNamespace(namespace);
    try (var watch = maps.withName("watched").watch(watcher)) {
      maps.resource(map("watched", Map.of("n", "1"))).create();
      maps.withName("watched").edit(found -> new ConfigMapBuilder(found).withData(Map.of("n", "2")).build());
      maps.withName("watched").delete();
      assertEquals(List.of("ADDED 1", "MODIFIED 2", "DELETED 2"), take(seen, 3));
    }
  }

  @Test
  void serverSideApplyKeepsOwnersApart() {
    var one = new PatchContext.Builder().withPatchType(PatchType.SERVER_SIDE_APPLY).withFieldManager("one").build();
    var two = new PatchContext.Builder().withPatchType(PatchType.SERVER_SIDE_APPLY).withFieldManager("two").withForce(false).build();
    var forced = new PatchContext.Builder().withPatchType(PatchType.SERVER_SIDE_APPLY).withFieldManager("two").withForce(true).build();
    client.resource(map("applied", Map.of("x", "1", "y", "1"))).patch(one);
    var other = client.resource(map("applied", Map.of("x", "2")));
    assertEquals(409, assertThrows(KubernetesClientException.class, () -> other.patch(two)).getCode());
    other.patch(forced);
    assertEquals(Map.of("x", "2", "z", "1"), client.resource(map("applied", Map.of("z", "1"))).patch(one).getData());
  }

  @Test
  void anInformerOfACustomResourceFollowsIt() throws Exception {
    var yaml = """
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: { name: gadgets.suite.skiff.dev }
        spec:
          group: suite.skiff.dev
          scope: Namespaced
          names: { kind: Gadget, plural: gadgets, singular: gadget }
          versions:
          - name: v1
            served: true
            storage: true
            subresources: { status: {} }
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: { type: object, properties: { size: { type: integer } } }
                  status: { type: object, properties: { ready: { type: boolean } } }
        """;
    var definition = (CustomResourceDefinition) client.load(new ByteArrayInputStream(yaml.getBytes(StandardCharsets.UTF_8))).items().get(0);
    var definitions = client.apiextensions().v1().customResourceDefinitions();
    definitions.resource(definition).serverSideApply();
    definitions.withName("gadgets.suite.skiff.dev").waitUntilCondition(
        found -> found != null && found.getStatus() != null && found.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True")),
        PATIENCE_SECONDS, TimeUnit.SECONDS);

    var seen = new LinkedBlockingQueue<String>();
    var gadgets = client.resources(Gadget.class).inNamespace(namespace);
    try (var informer = gadgets.inform(new ResourceEventHandler<Gadget>() {
      @Override
      public void onAdd(Gadget gadget) {
        seen.add("added " + gadget.getSpec().size);
      }

      @Override
      public void onUpdate(Gadget before, Gadget after) {
        seen.add("ready " + (after.getStatus() != null && after.getStatus().ready));
      }

      @Override
      public void onDelete(Gadget gadget, boolean isLastStateUnknown) {
        seen.add("deleted " + gadget.getMetadata().getName());
      }
    })) {
      var gadget = new Gadget();
      gadget.getMetadata().setName("a");
      gadget.setSpec(new Gadget.Spec());
      gadget.getSpec().size = 3;
      gadgets.resource(gadget).create();
      assertEquals(List.of("added 3"), take(seen, 1));
      gadgets.withName("a").editStatus(found -> {
        found.setStatus(new Gadget.Status());
        found.getStatus().ready = true;
        return found;
      });
      assertEquals(List.of("ready true"), take(seen, 1));
      gadgets.withName("a").delete();
      assertEquals(List.of("deleted a"), take(seen, 1));
    }
  }

  @Test
  void aPodRunsPrintsAndAnswersExec() throws Exception {
    var pod = new PodBuilder().withNewMetadata().withName("web").withNamespace(namespace)
        .addToAnnotations("skiff.dev/simulated-exec", "{\"echo hello\": {\"stdout\": \"hello\\n\"}}").endMetadata()
        .withNewSpec().addNewContainer().withName("main").withImage("example.com/app:1").endContainer().endSpec().build();
    client.resource(pod).create();
    var running = client.pods().inNamespace(namespace).withName("web");
    running.waitUntilReady(PATIENCE_SECONDS, TimeUnit.SECONDS);
    assertTrue(running.getLog().contains("started on a simulated node"));
    var output = new ByteArrayOutputStream();
    try (var exec = running.writingOutput(output).exec("echo", "hello")) {
      assertEquals(0, exec.exitCode().get(PATIENCE_SECONDS, TimeUnit.SECONDS));
    }
    assertEquals("hello\n", output.toString(StandardCharsets.UTF_8));
  }
}
