//! An executor's port where all connections have certificates: rows for other executors and clients, tasks from the scheduler.
//! In: calls over TLS. Out: Ballista's own answers. Tasks are passed on to its port for them, which listens to this machine alone.
//! Invariant: no call is answered whose certificate the cluster's authority has not signed.
//! Not here: what the calls do (Ballista).

use std::net::SocketAddr;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::serde::protobuf::executor_grpc_client::ExecutorGrpcClient;
use ballista_core::serde::protobuf::executor_grpc_server::{ExecutorGrpc, ExecutorGrpcServer};
use ballista_core::serde::protobuf::{
    CancelTasksParams, CancelTasksResult, LaunchMultiTaskParams, LaunchMultiTaskResult,
    LaunchTaskParams, LaunchTaskResult, RemoveJobDataParams, RemoveJobDataResult,
    StopExecutorParams, StopExecutorResult,
};
use ballista_executor::flight_service::BallistaFlightService;
use grouse_cluster::scheduler::MESSAGE_BYTES;
use grouse_cluster::tls::Tls;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Error, Server};
use tonic::{Request, Response, Status};

/// Serves until the process ends.
pub async fn serve(
    listener: TcpListener,
    stages: String,
    control: SocketAddr,
    tls: &Tls,
) -> Result<(), Error> {
    let channel = Endpoint::from_shared(format!("http://{control}"))?.connect_lazy();
    let tasks = ExecutorGrpcClient::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let tasks = ExecutorGrpcServer::new(Tasks(tasks))
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let rows = FlightServiceServer::new(BallistaFlightService::new(stages))
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    Server::builder()
        .tls_config(tls.server())?
        .add_service(rows)
        .add_service(tasks)
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await
}

/// Passes calls about tasks on.
struct Tasks(ExecutorGrpcClient<Channel>);

type Passed<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ExecutorGrpc for Tasks {
    async fn launch_task(&self, call: Request<LaunchTaskParams>) -> Passed<LaunchTaskResult> {
        self.0.clone().launch_task(call.into_inner()).await
    }

    async fn launch_multi_task(
        &self,
        call: Request<LaunchMultiTaskParams>,
    ) -> Passed<LaunchMultiTaskResult> {
        self.0.clone().launch_multi_task(call.into_inner()).await
    }

    async fn stop_executor(&self, call: Request<StopExecutorParams>) -> Passed<StopExecutorResult> {
        self.0.clone().stop_executor(call.into_inner()).await
    }

    async fn cancel_tasks(&self, call: Request<CancelTasksParams>) -> Passed<CancelTasksResult> {
        self.0.clone().cancel_tasks(call.into_inner()).await
    }

    async fn remove_job_data(
        &self,
        call: Request<RemoveJobDataParams>,
    ) -> Passed<RemoveJobDataResult> {
        self.0.clone().remove_job_data(call.into_inner()).await
    }
}
