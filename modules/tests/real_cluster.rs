//! The modules for Kubernetes against a real API server: `tests/cluster/cluster up` with at least one node, and
//! `KUBEON_TEST_KUBECONFIG` naming the kubeconfig that `tests/cluster/cluster kubeconfig` prints.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use kubeon_modules::{Error, Host, KubeAnswer, KubeRequest, Machine, Map, Service, Settings, run, spec_of};
use serde_json::{Value, json};

struct Nobody;

impl Service for Nobody {
    fn fetch(&self, _: &str, _: &mut dyn std::io::Write) -> Result<(), Error> {
        panic!("no content is sent");
    }
    fn progress(&self, _: &str) {}
}

fn kubeconfig() -> String {
    std::env::var("KUBEON_TEST_KUBECONFIG").expect("KUBEON_TEST_KUBECONFIG names a kubeconfig of tests/cluster")
}

fn execute(module: &str, mut args: Value, settings: Settings) -> Map {
    let fields = args.as_object_mut().expect("arguments are a mapping");
    fields.entry("kubeconfig").or_insert_with(|| kubeconfig().into());
    let decoded = (spec_of(module).expect("a module").decode)(fields).expect("right arguments");
    run(decoded.as_ref(), &mut Machine::new(&Nobody, BTreeMap::new(), None), settings)
}

fn done(module: &str, args: Value) -> Map {
    let result = execute(module, args, Settings { check: false, diff: true, look: false });
    assert_eq!(result.get("failed"), None, "{result:#?}");
    result
}

fn changed(module: &str, args: Value) -> bool {
    done(module, args)["changed"] == json!(true)
}

fn failure(module: &str, args: Value) -> String {
    let result = execute(module, args, Settings::default());
    assert_eq!(result.get("failed"), Some(&json!(true)), "{result:#?}");
    result["msg"].as_str().expect("a message").to_owned()
}

/// Executes until the failure says `part`: controllers take their time to get there.
fn failure_with(module: &str, args: &Value, part: &str) -> String {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let said = failure(module, args.clone());
        if said.contains(part) {
            return said;
        }
        assert!(Instant::now() < end, "{said}");
    }
}

fn ask(method: &str, path: &str, body: Option<Value>) -> KubeAnswer {
    let request = KubeRequest {
        kubeconfig: Some(kubeconfig()),
        method: method.into(),
        path: path.into(),
        content_type: (method == "PATCH").then(|| "application/merge-patch+json".into()),
        body,
        ..KubeRequest::default()
    };
    Machine::new(&Nobody, BTreeMap::new(), None).kubernetes(&request).expect("an answer")
}

/// Makes a namespace anew, so that a test that broke off before does not matter.
fn namespace(name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    done("k8s_apply", json!({"definition": object, "state": "absent", "wait": true}));
    done("k8s_apply", json!({"definition": object, "wait": true}));
}

fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data,
    })
}

#[test]
fn a_label_is_set_kept_followed_and_removed() {
    let key = "kubeon-run.test/present";
    let nodes = ask("GET", "/api/v1/nodes", None).body;
    let node = nodes["items"][0]["metadata"]["name"].as_str().expect("the cluster has a node").to_owned();
    let path = format!("/api/v1/nodes/{node}?fieldManager=somebody-else");
    ask("PATCH", &path, Some(json!({"metadata": {"labels": {key: null}}})));
    let addresses = nodes["items"][0]["status"]["addresses"].as_array().expect("a node has addresses").clone();
    let address = addresses.iter().find(|one| one["type"] == "InternalIP").expect("an internal address");
    let by_address = json!({"address": address["address"], "labels": {key: "yes"}});
    let args = |more: Value| {
        let mut args = json!({"name": node.to_uppercase(), "labels": {key: "yes"}});
        args.as_object_mut().expect("a mapping").extend(more.as_object().expect("a mapping").clone());
        args
    };
    let check = execute("k8s_label", by_address.clone(), Settings { check: true, diff: true, look: false });
    assert_eq!((&check["changed"], &check["labels"][key]), (&json!(true), &json!("yes")), "{check:#?}");
    let result = done("k8s_label", by_address);
    assert_eq!((&result["changed"], &result["node"]), (&json!(true), &json!(node)), "{result:#?}");
    assert!(!changed("k8s_label", args(json!({}))));

    ask("PATCH", &path, Some(json!({"metadata": {"labels": {key: "true"}}})));
    let refused = failure("k8s_label", args(json!({})));
    assert!(refused.contains("is `true`, set by `somebody-else`"), "{refused}");
    let followed = done("k8s_label", args(json!({"accept": ["true"]})));
    assert_eq!(followed["followed"], json!({key: "true"}));
    assert!(!changed("k8s_label", args(json!({"state": "absent"}))), "another's label stays");
    assert!(changed("k8s_label", args(json!({"overwrite": true}))));
    assert!(changed("k8s_label", args(json!({"state": "absent"}))));
    assert!(!changed("k8s_label", args(json!({"state": "absent"}))));

    let nowhere = failure("k8s_label", json!({"name": "no-such-node", "labels": {key: "yes"}}));
    assert!(nowhere.contains("no node with name `no-such-node`") && nowhere.contains(&node), "{nowhere}");
}

#[test]
fn objects_are_applied_kept_pruned_and_removed() {
    let space = "kubeon-test-apply";
    namespace(space);
    let all = json!([config_map(space, "a", json!({"k": "1"})), config_map(space, "b", json!({}))]);
    let args =
        |definition: &Value| json!({"definition": definition, "name": "test", "namespace": space, "prune": true});
    let check = execute("k8s_apply", args(&all), Settings { check: true, diff: true, look: false });
    assert_eq!(check["changed"], json!(true));
    assert_eq!(ask("GET", &format!("/api/v1/namespaces/{space}/configmaps/a"), None).status, 404);
    assert!(changed("k8s_apply", args(&all)));
    assert!(!changed("k8s_apply", args(&all)));

    let mut other = all.clone();
    other[0]["data"]["k"] = json!("2");
    let result = done("k8s_apply", args(&other));
    let diff = result["diff"].to_string();
    assert!(diff.contains("k: \\\"1\\\"") && diff.contains("k: \\\"2\\\""), "{diff}");

    // Somebody else changes the value: that is a conflict, which can be forced.
    let path = format!("/api/v1/namespaces/{space}/configmaps/a?fieldManager=somebody-else");
    ask("PATCH", &path, Some(json!({"data": {"k": "3"}})));
    let refused = failure("k8s_apply", args(&other));
    assert!(refused.contains("`.data.k` is managed by `somebody-else`"), "{refused}");
    let mut forced = args(&other);
    forced["force_conflicts"] = json!(true);
    assert!(changed("k8s_apply", forced));

    let fewer = json!([other[0]]);
    let result = done("k8s_apply", args(&fewer));
    assert!(result["objects"].to_string().contains("deleted"), "{result:#?}");
    assert_eq!(ask("GET", &format!("/api/v1/namespaces/{space}/configmaps/b"), None).status, 404);
    assert!(!changed("k8s_apply", args(&fewer)));

    let all_gone = json!({"name": "test", "namespace": space, "state": "absent", "wait": true});
    let result = done("k8s_apply", all_gone.clone());
    assert!(result["objects"].to_string().contains("deleted"), "{result:#?}");
    assert!(!changed("k8s_apply", all_gone));
    for name in ["a", "kubeon-run.test"] {
        assert_eq!(ask("GET", &format!("/api/v1/namespaces/{space}/configmaps/{name}"), None).status, 404);
    }
}

#[test]
fn a_secret_is_kept_by_its_plain_text_and_never_shown() {
    let space = "kubeon-test-secret";
    namespace(space);
    let secret = |value: &str| {
        json!({"definition": format!("
apiVersion: v1
kind: Secret
metadata: {{name: s, namespace: {space}}}
stringData: {{password: {value}}}
")})
    };
    assert!(changed("k8s_apply", secret("hunter2")));
    assert!(!changed("k8s_apply", secret("hunter2")));
    let result = Value::from(done("k8s_apply", secret("hunter3"))).to_string();
    assert!(result.contains("another value") && !result.contains("hunter"), "{result}");
    assert!(!result.contains("aHVudGVy"), "{result}");
}

#[test]
fn a_kind_and_its_instance_come_in_one_task() {
    let space = "kubeon-test-kinds";
    let definition = format!(
        "
apiVersion: kubeon-run.test/v1
kind: Widget
metadata: {{name: one, namespace: {space}}}
spec: {{size: 3}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.kubeon-run.test}}
spec:
  group: kubeon-run.test
  scope: Namespaced
  names: {{plural: widgets, singular: widget, kind: Widget}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{size: {{type: integer}}}}}}
"
    );
    let args = |more: Value| {
        let mut args = json!({"definition": definition, "create_namespace": true, "wait": true});
        args.as_object_mut().expect("a mapping").extend(more.as_object().expect("a mapping").clone());
        args
    };
    done("k8s_apply", args(json!({"state": "absent"})));
    let check = execute("k8s_apply", args(json!({})), Settings { check: true, diff: true, look: false });
    assert_eq!((&check["changed"], check.get("failed")), (&json!(true), None), "{check:#?}");
    let result = done("k8s_apply", args(json!({})));
    assert_eq!(result["changed"], json!(true));
    assert_eq!(result["diff"].to_string().matches("size: 3").count(), 1, "{result:#?}");
    assert!(!changed("k8s_apply", args(json!({}))));
    let found = done("k8s_info", json!({"kind": "widget", "api_version": "kubeon-run.test/v1", "namespace": space}));
    assert_eq!(found["resources"][0]["spec"]["size"], json!(3), "{found:#?}");
    assert!(changed("k8s_apply", args(json!({"state": "absent"}))));
    let found = done("k8s_info", json!({"kind": "Widget", "api_version": "kubeon-run.test/v1"}));
    assert_eq!((&found["api_found"], &found["resources"]), (&json!(false), &json!([])), "{found:#?}");
}

#[test]
fn mistakes_are_explained() {
    let unknown = failure("k8s_apply", json!({"definition": config_map("no-such-namespace", "x", json!({}))}));
    assert!(unknown.contains("no namespace `no-such-namespace`"), "{unknown}");
    let kind = json!({"apiVersion": "apps/v1", "kind": "Daemonset", "metadata": {"name": "x"}});
    let said = failure("k8s_apply", json!({"definition": kind}));
    assert!(said.contains("did you mean `DaemonSet`?"), "{said}");
    let version = json!({"apiVersion": "apps/v1beta1", "kind": "DaemonSet", "metadata": {"name": "x"}});
    let said = failure("k8s_apply", json!({"definition": version}));
    assert!(said.contains("it serves `apps/v1`"), "{said}");
    let field = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "dada": {},
    });
    let said = failure("k8s_apply", json!({"definition": field}));
    assert!(said.contains("dada"), "{said}");
    let said = failure("k8s_info", json!({"kind": "Node", "context": "elsewhere"}));
    assert!(said.contains("no context `elsewhere`, it has"), "{said}");
    let said = failure("k8s_info", json!({"kind": "Node", "kubeconfig": "/no/such/file"}));
    assert!(said.contains("/no/such/file"), "{said}");
}

#[test]
fn credentials_and_certificates_are_told_apart() {
    let folder = std::env::temp_dir().join(format!("kubeon-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let config: Value =
        serde_yaml::from_str(&std::fs::read_to_string(kubeconfig()).expect("the kubeconfig")).expect("YAML");
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut config = config.clone();
        change(&mut config);
        let path = folder.join(name);
        std::fs::write(&path, config.to_string()).expect("a temporary file");
        failure("k8s_info", json!({"kind": "Node", "kubeconfig": path}))
    };
    let said = with("token", &|config| config["users"][0]["user"] = json!({"token": "wrong"}));
    assert!(said.contains("does not accept the credentials"), "{said}");
    let said = with("nobody", &|config| config["users"][0]["user"] = json!({}));
    assert!(said.contains("\"system:anonymous\"") && said.contains("gives no credentials"), "{said}");
    let said = with("name", &|config| {
        config["clusters"][0]["cluster"]["tls-server-name"] = json!("other.example.com");
    });
    assert!(said.contains("certificate is not for `other.example.com`"), "{said}");
    let said = with("authority", &|config| {
        let cluster = config["clusters"][0]["cluster"].as_object_mut().expect("a cluster");
        cluster.remove("certificate-authority");
        cluster.remove("certificate-authority-data");
    });
    assert!(said.contains("holds no `certificate-authority-data`"), "{said}");
    let said = with("exec", &|config| {
        config["users"][0]["user"] = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin",
            "installHint": "install it", "interactiveMode": "IfAvailable",
        }});
    });
    assert!(said.contains("install it"), "{said}");
    std::fs::remove_dir_all(&folder).expect("the temporary folder");
}

/// Where the kubelet puts the account of a pod.
const ACCOUNT: &str = "/run/secrets/kubernetes.io/serviceaccount";

/// As in a pod: no kubeconfig, and an account in the kubelet's place. The mounts are of a process of its own.
#[test]
fn a_pod_asks_as_its_own_service_account() {
    if std::env::var_os("KUBEON_TEST_IN_A_POD").is_some() {
        let fields = json!({"kind": "ServiceAccount", "namespace": "default", "name": "default"});
        let decoded = (spec_of("k8s_info").expect("a module").decode)(fields.as_object().expect("a mapping"));
        let decoded = decoded.expect("right arguments");
        let result = run(decoded.as_ref(), &mut Machine::new(&Nobody, BTreeMap::new(), None), Settings::default());
        println!("in a pod: {}", Value::Object(result));
        return;
    }
    let rule = json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "list"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "kubeon-test-pod"}, "rules": [rule]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "kubeon-test-pod"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kubeon-test-pod"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]});
    done("k8s_apply", json!({"definition": [role, binding], "namespace": "default"}));
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", Some(token));
    let token = answer.body["status"]["token"].as_str().expect("a token").to_owned();
    let config: Value =
        serde_yaml::from_str(&std::fs::read_to_string(kubeconfig()).expect("the kubeconfig")).expect("YAML");
    let cluster = &config["clusters"][0]["cluster"];
    let authority = match cluster["certificate-authority"].as_str() {
        Some(path) => format!("cat '{path}'"),
        None => format!("echo {} | base64 --decode", cluster["certificate-authority-data"].as_str().expect("a CA")),
    };
    let server = cluster["server"].as_str().expect("a server").trim_start_matches("https://");
    let (address, port) = server.rsplit_once(':').expect("a port");
    let inside = |token: &str| {
        let script = format!(
            "ca=$({authority}) && mount -t tmpfs none /run && mkdir -p {ACCOUNT} && echo \"$ca\" >{ACCOUNT}/ca.crt && \
             printf %s {token} >{ACCOUNT}/token && printf default >{ACCOUNT}/namespace && \
             exec \"$0\" --exact a_pod_asks_as_its_own_service_account --nocapture"
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .arg(std::env::current_exe().expect("this program"))
            .envs([("KUBEON_TEST_IN_A_POD", "1"), ("KUBERNETES_SERVICE_HOST", address)])
            .envs([("KUBERNETES_SERVICE_PORT", port), ("HOME", "/nowhere"), ("KUBECONFIG", "")])
            .output()
            .expect("unshare");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    // A server learns of a role that was just bound a moment later, and longer after a restart.
    let end = Instant::now() + Duration::from_secs(60);
    let mut said = inside(&token);
    while said.contains("forbidden") && Instant::now() < end {
        thread::sleep(Duration::from_millis(200));
        said = inside(&token);
    }
    assert!(said.contains("in a pod: ") && said.contains("\"name\":\"default\""), "{said}");
    let said = inside("wrong");
    assert!(said.contains("the service account of this pod") && said.contains("does not accept"), "{said}");
    done("k8s_apply", json!({"definition": [role, binding], "namespace": "default", "state": "absent"}));
}

#[test]
fn a_node_that_is_not_there_yet_is_waited_for() {
    let (node, address) = ("kubeon-late", "10.99.0.201");
    let label = |wait_s: u64| json!({"address": address, "labels": {"kubeon-run.test/late": "yes"}, "wait_s": wait_s});
    let said = failure("k8s_label", label(0));
    assert!(said.contains(&format!("no node with address `{address}`")), "{said}");
    let joined = thread::spawn(move || lab(&["node", "add", &format!("{node}={address}")]));
    let result = done("k8s_label", label(60));
    assert_eq!((&result["changed"], &result["node"]), (&json!(true), &json!(node)), "{result:#?}");
    joined.join().expect("the node");
    lab(&["node", "remove", node]);
}

/// Runs the lab's own command.
fn lab(arguments: &[&str]) {
    let file = kubeconfig();
    let folder = Path::new(&file).ancestors().nth(3).expect("a kubeconfig of tests/cluster");
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cluster/cluster");
    let status = Command::new(cluster).args(arguments).env("KUBEON_LAB", folder).status().expect("the lab's command");
    assert!(status.success(), "cluster {}", arguments.join(" "));
}

#[test]
fn a_rollout_is_waited_for_and_explained() {
    let (space, node, address) = ("kubeon-test-rollout", "kubeon-rollout", "10.99.0.200");
    namespace(space);
    let made = format!("{node}={address},gpus=2,pull=false");
    lab(&["node", "add", &made]);
    let key = "kubeon-run.test/rollout";
    done("k8s_label", json!({"address": address, "labels": {key: "yes"}, "wait_s": 30}));
    let plugin = |runtime: Option<&str>, limit: u64| {
        let definition = json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "plugin"},
            "spec": {
                "selector": {"matchLabels": {"name": "plugin"}},
                "template": {
                    "metadata": {"labels": {"name": "plugin"}},
                    "spec": {
                        "runtimeClassName": runtime,
                        "nodeSelector": {key: "yes"},
                        "containers": [{
                            "name": "plugin",
                            "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
                            "volumeMounts": [{"name": "plugins", "mountPath": "/var/lib/kubelet/device-plugins"}],
                        }],
                        "volumes": [{"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
                    },
                },
            },
        });
        json!({"definition": definition, "namespace": space, "wait": true, "wait_timeout": limit})
    };
    let said = failure_with("k8s_apply", &plugin(None, 5), "i/o timeout");
    assert!(said.contains("0 of 1 pods are available") && said.contains(&format!("on node `{node}`")), "{said}");

    // A runtime class whose runtime the node lacks: only an event says so.
    lab(&["node", "set", node, "pull=true", "runtime=none"]);
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kubeon-test"},
        "handler": "nvidia",
    });
    done("k8s_apply", json!({"definition": class}));
    let why = "no runtime for \"nvidia\" is configured";
    failure_with("k8s_apply", &plugin(Some("kubeon-test"), 5), why);

    lab(&["node", "set", node, "runtime=class"]);
    done("k8s_apply", plugin(Some("kubeon-test"), 120));
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let found = done("k8s_info", json!({"kind": "Node", "name": node}));
        if found["resources"][0]["status"]["allocatable"]["nvidia.com/gpu"] == json!("2") {
            break;
        }
        assert!(Instant::now() < end, "{found:#?}");
        thread::sleep(Duration::from_millis(200));
    }
    done("k8s_apply", json!({"definition": class, "state": "absent"}));
    lab(&["node", "remove", node]);
}

#[test]
fn a_drained_node_loses_its_pods_when_their_budget_allows_it() {
    let space = "kubeon-test-drain";
    namespace(space);
    let labels = json!({"app": space});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "lab.kubeon.run/shell:1"}]},
            },
        },
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}},
    });
    done("k8s_apply", json!({"definition": [deployment, budget], "namespace": space, "wait": true}));
    let pods = || {
        let found = done("k8s_info", json!({"kind": "Pod", "namespace": space}));
        let pods = found["resources"].as_array().expect("a list").clone();
        pods.into_iter().map(|pod| (pod["metadata"]["uid"].to_string(), pod["spec"]["nodeName"].clone())).collect()
    };
    let before: BTreeMap<String, Value> = pods();
    let node = before.values().next().expect("a pod").clone();
    let unschedulable = || {
        ask("GET", &format!("/api/v1/nodes/{}", node.as_str().expect("a name")), None).body["spec"]["unschedulable"]
            == json!(true)
    };
    let drain = |limit: u64| json!({"name": node, "pod_selectors": [format!("app={space}")], "delete_options": {"wait_timeout": limit}});

    let check = execute("k8s_drain", drain(3), Settings { check: true, diff: true, look: false });
    assert_eq!(check["changed"], json!(true), "{check:#?}");
    assert!(!unschedulable() && pods() == before);
    // The API server may be away for a while: another test restarts it.
    failure_with("k8s_drain", &drain(3), "disruption budget");
    assert!(unschedulable(), "no new pods while the others are waited for");
    assert_eq!(pods(), before);

    done("k8s_apply", json!({"definition": budget, "namespace": space, "state": "absent"}));
    let result = done("k8s_drain", drain(60));
    assert_eq!((&result["changed"], &result["was_cordoned"]), (&json!(true), &json!(true)), "{result:#?}");
    assert!(!pods().values().any(|other| *other == node), "pods are left on {node}");
    assert!(!changed("k8s_drain", drain(60)));
    assert!(changed("k8s_drain", json!({"name": node, "state": "uncordon"})));
    assert!(!unschedulable() && !changed("k8s_drain", json!({"name": node, "state": "uncordon"})));
    done("k8s_apply", json!({"definition": deployment, "namespace": space, "state": "absent"}));
}

#[test]
fn a_restart_of_the_api_server_is_survived() {
    let space = "kubeon-test-restart";
    namespace(space);
    let restart = thread::spawn(|| lab(&["restart-apiserver"]));
    let end = Instant::now() + Duration::from_secs(300);
    let mut value = 0;
    while !restart.is_finished() {
        assert!(Instant::now() < end, "the API server does not come back");
        value += 1;
        let map = config_map(space, "m", json!({"n": value.to_string()}));
        assert!(changed("k8s_apply", json!({"definition": map})));
    }
    restart.join().expect("the restart");
    // One request may have waited through the whole restart: what it wrote is there afterwards.
    assert!(value > 0, "the restart ended before anything was asked");
    let map = config_map(space, "m", json!({"n": value.to_string()}));
    assert!(!changed("k8s_apply", json!({"definition": map})));
}
